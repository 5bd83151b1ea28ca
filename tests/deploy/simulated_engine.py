"""Mimics an engine as a real process on loopback: its options, health, metrics, completions, and ways to fail.

Run as the Python of an environment that holds vLLM. What it does is in the variable SIMULATED, words with commas:
dies, hangs, garbage, no-metrics, dies-later, closes, repeats. Draft tokens are accepted by ``RATE`` at each position,
after ``SIMULATED_TURN`` rounds by half of it. A token comes every ``ROUND_S`` times what a round costs.
"""

# ruff: noqa: S311, T201 -- it prints as servers do, and draws no secrets

import json
import os
import random
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSION = os.environ.get("SIMULATED_VERSION", "0.32.0")
MODES = set(os.environ.get("SIMULATED", "").split(","))
TURN = int(os.environ.get("SIMULATED_TURN", "0"))
ROUND_S, COST, RATE = 0.002, 1.25, 0.7


class Engine:
    """What is counted, and how texts come about."""

    def __init__(self, drafted):
        self.drafted, self.lock, self.law = drafted, threading.Lock(), random.Random(0)
        self.rounds = self.generated = self.prompted = self.finished = self.running = 0
        self.positions = [0] * drafted

    def round(self):
        """Return how many tokens a round writes."""
        with self.lock:
            self.rounds += 1
            rate = RATE / 2 if TURN and self.rounds > TURN else RATE
            accepted = 0
            while accepted < self.drafted and self.law.random() < rate:
                accepted += 1
            for k in range(accepted):
                self.positions[k] += 1
            self.generated += accepted + 1
            return accepted + 1

    def metrics(self):
        labels = 'engine="0",model_name="m"'
        rows = {
            "generation_tokens_total": self.generated, "prompt_tokens_total": self.prompted,
            "request_success_total": self.finished, "num_requests_running": self.running,
        }  # fmt: skip
        if self.drafted:
            rows |= {
                "spec_decode_num_drafts_total": self.rounds,
                "spec_decode_num_draft_tokens_total": self.rounds * self.drafted,
                "spec_decode_num_accepted_tokens_total": sum(self.positions),
            }
        lines = [f"vllm:{name}{{{labels}}} {value}" for name, value in rows.items()]
        per = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
        lines += [f'{per}{{{labels},position="{k}"}} {hits}' for k, hits in enumerate(self.positions)]
        return "\n".join(lines) + "\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if "garbage" in MODES:
            self.wfile.write(b"\x00\xff garbage\r\n\r\n")
            self.close_connection = True
            return
        pages = {
            "/health": "", "/version": json.dumps({"version": VERSION}),
            "/v1/models": json.dumps({"data": [{"id": "m", "owned_by": "vllm"}]}),
        }  # fmt: skip
        if self.path == "/metrics" and "no-metrics" not in MODES:
            self.answer(200, self.server.engine.metrics())
        elif self.path in pages:
            self.answer(200, pages[self.path])
        else:
            self.answer(404, "no such page")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        engine = self.server.engine
        if "dies-later" in MODES and engine.finished >= 3:
            print("RuntimeError: CUDA error: an illegal memory access was encountered", flush=True)
            os._exit(3)
        if "closes" in MODES and engine.finished >= 3:
            self.close_connection = True
            return
        words = self.words(body)
        with engine.lock:
            engine.running += 1
            engine.prompted += len(words)
        self.stream(body) if body.get("stream") else self.answer(200, json.dumps(self.whole(body)))
        with engine.lock:
            engine.running -= 1
            engine.finished += 1

    def words(self, body):
        text = body.get("prompt") or body["messages"][-1]["content"]
        return text.split()

    def rounds(self, body):
        """Yield how many tokens come, in time."""
        left = body["max_tokens"]
        while left > 0:
            tokens = min(left, self.server.engine.round())
            time.sleep(ROUND_S * (COST if self.server.engine.drafted else 1))
            left -= tokens
            yield tokens

    def text(self, body, start, tokens):
        if "repeats" in MODES:
            return " the" * tokens
        seed = " ".join(self.words(body))
        return "".join(f" w{random.Random(f'{seed} {i}').randrange(5000)}" for i in range(start, start + tokens))

    def usage(self, body):
        return {"prompt_tokens": len(self.words(body)), "completion_tokens": body["max_tokens"]}

    def whole(self, body):
        for _ in self.rounds(body):
            pass
        text = self.text(body, 0, body["max_tokens"])
        choice = {"index": 0, "text": text, "message": {"content": text}, "finish_reason": "length"}
        return {"choices": [choice], "usage": self.usage(body)}

    def stream(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        done = 0
        for tokens in self.rounds(body):
            text = self.text(body, done, tokens)
            done += tokens
            said = {"text": text} if "prompt" in body else {"delta": {"content": text}}
            self.event({"choices": [{"index": 0} | said]})
        self.event({"choices": [], "usage": self.usage(body)})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, value):
        self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
        self.wfile.flush()

    def answer(self, status, text):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        return


class Server(ThreadingHTTPServer):
    def handle_error(self, *_):  # a client that went away
        return


def option(words, name, default):
    return words[words.index(name) + 1] if name in words else default


def main():
    words = sys.argv[1:]
    if "-c" in words:  # asked for the version of the package
        print(VERSION)
        return
    if "dies" in MODES:
        print("ValueError: head_size 576 is not supported", flush=True)
        sys.exit(1)
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print(f"worker {worker.pid}", flush=True)
    if "hangs" in MODES:
        time.sleep(600)
    config = json.loads(option(words, "--speculative-config", "{}"))
    server = Server(("127.0.0.1", int(option(words, "--port", "8000"))), Handler)
    server.engine = Engine(config.get("num_speculative_tokens", 0))
    print("Application startup complete.", flush=True)
    server.serve_forever(poll_interval=0.02)


if __name__ == "__main__":
    main()
