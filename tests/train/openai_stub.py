"""A server on loopback that speaks as much of OpenAI's chat completions as the trainer asks for."""

import json
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tiny_model import BOS, EOS, TURN, byte_tokenizer

Answer = dict[str, Any] | tuple[int, str]


class Stub:
    """What the server answers, and what it was asked.

    Attributes:
        answer: makes an answer of a request, or a status with a text.
        models: that it lists.
        asked: bodies of the requests so far.
    """

    def __init__(self, answer: Callable[[dict[str, Any]], Answer] | None = None, models=("tiny",)) -> None:
        self.answer = answer or completion
        self.models = models
        self.asked: list[dict[str, Any]] = []


def completion(body: dict[str, Any], *, text: str | None = None, **changes: Any) -> dict[str, Any]:
    """The answer of a server that runs the tiny model; ``changes`` are keys of usage."""
    tokenizer = byte_tokenizer()
    prompt = BOS + "".join(f"{TURN}{m['role']}\n{m['content']}{EOS}" for m in body["messages"]) + f"{TURN}assistant\n"
    text = f"You said: {body['messages'][-1]['content']}" if text is None else text
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    ended = len(ids) < body["max_tokens"]
    text = text if ended else tokenizer.decode(ids[: body["max_tokens"]])
    usage = {
        "prompt_tokens": len(tokenizer.encode(prompt, add_special_tokens=False).ids),
        "completion_tokens": min(len(ids) + 1, body["max_tokens"]),
    }
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop" if ended else "length"}
    return {"choices": [choice], "usage": usage | changes}


class _Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Say nothing of a client that has gone: some tests go."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving(stub: Stub):
    """Run the server; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self._send(200, json.dumps({"data": [{"id": name} for name in stub.models]}))

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            stub.asked.append(body)
            answer = stub.answer(body)
            self._send(*(answer if isinstance(answer, tuple) else (200, json.dumps(answer))))

        def _send(self, status, text):
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_arguments):
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
