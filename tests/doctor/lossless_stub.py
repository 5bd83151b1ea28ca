"""A server on loopback whose next word is a hash of the text before; it can be told to misbehave."""

import hashlib
import json
import random
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import exp, log

WORDS = [f" w{number}" for number in range(12)]


def law(text):
    """Log-probabilities of the next word; every seventh text or so has a near-tie at the top."""
    draw = random.Random(hashlib.sha256(text.encode()).digest())  # noqa: S311 -- a stand-in for a model
    logits = dict(zip(draw.sample(WORDS, 5), [3.0, 2.0, 1.0, 0.5, 0.0], strict=True))
    if draw.random() < 0.15:
        first, second = list(logits)[:2]
        logits[second] = logits[first] - 1e-5
    total = log(sum(exp(value) for value in logits.values()))
    return {word: value - total for word, value in logits.items()}


@dataclass
class Stub:
    """How it behaves: names of what it does wrong."""

    faults: frozenset = frozenset()
    seen: Counter = field(default_factory=Counter)
    flying: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def complete(self, body):
        prompt, greedy = body["prompt"], body["temperature"] == 0
        with self.lock:
            self.seen[prompt] += 1
            cached, odd = self.seen[prompt] > 1, self.seen[prompt] % 2
        base = prompt
        if greedy and "cache" in self.faults and cached:
            base = prompt[10:]
        if greedy and "concurrency" in self.faults and self.busy():
            base = prompt[20:]
        if "always" in self.faults:
            base = prompt[30:]
        chance = random.Random(f"{body['seed']}{prompt}")  # noqa: S311 -- likewise
        return self.walk(base, body["max_tokens"], greedy, odd, chance)

    def busy(self):
        time.sleep(0.01)
        return self.flying > 1

    def walk(self, text, count, greedy, odd, chance):
        tokens, logprobs, tops = [], [], []
        for place in range(count):
            stated = law(text)
            ranked = sorted(stated, key=stated.get, reverse=True)
            word = ranked[0] if greedy else chance.choices(ranked, [exp(stated[one]) for one in ranked])[0]
            if not greedy and ("cut" in self.faults or ("law" in self.faults and place)) and chance.random() < 0.9:
                word = ranked[0]
            if greedy and "ties" in self.faults and odd and stated[ranked[0]] - stated[ranked[1]] < 1e-4:
                word = ranked[1]
            if greedy and "restless" in self.faults and place == 3 and odd:
                word = ranked[4]
            noise = chance.uniform(-1.5, 1.5) if "drift" in self.faults and odd else 0.0
            tokens.append(word)
            logprobs.append(stated[word] + noise)
            tops.append(stated)
            text += word
        return tokens, logprobs, tops


def answer(stub, body):
    tokens, logprobs, tops = stub.complete(body)
    found = {"tokens": tokens, "token_logprobs": logprobs, "top_logprobs": tops}
    if "objects" in stub.faults:
        rows = zip(tokens, logprobs, tops, strict=True)
        found = {
            "content": [
                {"token": a, "logprob": b, "top_logprobs": [{"token": w, "logprob": v} for w, v in c.items()]}
                for a, b, c in rows
            ]
        }
    return {"choices": [{"text": "".join(tokens), "logprobs": None if "silent" in stub.faults else found}]}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if "hang" in self.server.stub.faults:
            time.sleep(1)
        self.reply({"data": [{"id": "tiny"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        stub = self.server.stub
        if "refuse" in stub.faults or ("small" in stub.faults and len(body["prompt"]) > 3000):
            self.reply({"error": "no logprobs here"}, 400)
            return
        with stub.lock:
            stub.flying += 1
        try:
            self.reply({"detail": "odd"} if "odd" in stub.faults else answer(stub, body))
        finally:
            with stub.lock:
                stub.flying -= 1

    def reply(self, found, status=200):
        data = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data)
        except BrokenPipeError:
            return

    def log_message(self, *_):
        return


@contextmanager
def serving(*faults):
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.stub = Stub(frozenset(faults))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
