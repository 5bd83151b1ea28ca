"""Starts ``outrider serve`` and speaks to it without a client library, so that broken requests can be sent too."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

PATIENCE_S = 120


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def events(self) -> list[Any]:
        """The data of server-sent events, the last line left out."""
        lines = [line for line in self.body.decode().split("\n\n") if line]
        assert all(line.startswith("data: ") for line in lines)
        assert lines[-1] == "data: [DONE]"
        return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


@dataclass
class Served:
    process: subprocess.Popen
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def model(self) -> str:
        return "tiny"

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def send(self, method: str, path: str, body: bytes | None = None, headers: dict | None = None) -> Answer:
        connection = self.connect()
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def post(self, path: str, wishes: Any, **headers: str) -> Answer:
        if isinstance(wishes, dict) and path.startswith("/v1"):
            wishes = {"model": self.model} | wishes
        body = json.dumps(wishes).encode()
        return self.send("POST", path, body, {"Content-Type": "application/json"} | headers)

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, None, headers)

    def metric(self, name: str, **labels: str) -> float:
        families = text_string_to_metric_families(self.get("/metrics").body.decode())
        samples = [sample for family in families for sample in family.samples if sample.name == name]
        return sum(one.value for one in samples if labels.items() <= one.labels.items())

    def wait_idle(self) -> None:
        """Until nothing runs or waits."""
        wait_for(lambda: not self.metric("vllm:num_requests_running") + self.metric("vllm:num_requests_waiting"))

    def log_lines(self) -> list[dict]:
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]


def wait_for(condition, seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.02)


def start(*words: Any, log: Path, **environment: str) -> subprocess.Popen:
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **environment}
    command = [sys.executable, "-m", "outrider", "serve", *map(str, words), "--port", "0"]
    with log.open("w") as file:
        return subprocess.Popen(command, stderr=file, stdin=subprocess.DEVNULL, env=settings)


def wait_ready(process: subprocess.Popen, log: Path) -> int:
    """Return the port once it serves."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if found := re.search(r"answers at https?://[^\s]*:(\d+)/v1", log.read_text()):
            return int(found.group(1))
        assert process.poll() is None, log.read_text()
        time.sleep(0.05)
    raise AssertionError(log.read_text())


@contextmanager
def served(model: Path, *words: Any, **environment: str) -> Iterator[Served]:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        process = start(model, "--served-name", "tiny", *words, log=log, **environment)
        try:
            yield Served(process, wait_ready(process, log), log)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
