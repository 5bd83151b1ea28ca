"""Clients that leave, stall or never finish asking; an engine that dies; a server that is told to stop."""

import json
import os
import signal
import socket
import time
from pathlib import Path

import pytest
from server.serving import served, start, wait_for, wait_ready

LONG = {"prompt": "a", "max_tokens": 4000, "ignore_eos": True, "temperature": 0}
HEAD = (
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)


@pytest.fixture(scope="module")
def roomy(tiny):
    """A server for long texts."""
    with served(tiny, "--slots", 2, "--max-len", 4096) as running:
        yield running


def asked(server, wishes) -> socket.socket:
    """Send a request; return the open socket."""
    body = json.dumps({"model": "tiny"} | wishes).encode()
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    connection.sendall(HEAD % len(body) + body)
    return connection


def running(server) -> float:
    return server.metric("vllm:num_requests_running")


@pytest.mark.parametrize("stream", [True, False])
def test_who_leaves_frees_the_slot(roomy, stream):
    cancelled = roomy.metric("vllm:request_success_total", finished_reason="cancelled")
    connection = asked(roomy, LONG | {"stream": stream})
    wait_for(lambda: running(roomy) == 1)
    connection.close()
    roomy.wait_idle()
    assert roomy.metric("vllm:request_success_total", finished_reason="cancelled") == cancelled + 1


def test_who_leaves_the_queue_leaves_it(roomy):
    connections = [asked(roomy, LONG | {"stream": True}) for _ in range(4)]
    wait_for(lambda: roomy.metric("vllm:num_requests_waiting") == 2)
    connections[3].close()
    wait_for(lambda: roomy.metric("vllm:num_requests_waiting") < 2)
    for connection in connections[:3]:
        connection.close()
    roomy.wait_idle()


def test_a_reader_who_stops_reading_holds_up_nobody(roomy):
    connection = asked(roomy, LONG | {"stream": True, "logprobs": 20})
    connection.recv(100)
    begun = time.monotonic()
    assert roomy.post("/v1/completions", {"prompt": "b", "max_tokens": 5}).status == 200
    assert time.monotonic() - begun < 5
    wait_for(lambda: running(roomy) == 0, 60)  # the text is written to its end, though nobody takes it
    connection.close()


def test_sockets_that_never_finish_asking_hold_up_nobody(roomy):
    silent = [socket.create_connection(("127.0.0.1", roomy.port)) for _ in range(200)]
    for number, connection in enumerate(silent):
        connection.sendall([b"", b"POST /v1/comp", HEAD % 1000, HEAD % 1000 + b'{"mod'][number % 4])
    assert roomy.post("/v1/completions", {"prompt": "b", "max_tokens": 5}).status == 200
    for connection in silent:
        connection.close()
    assert roomy.get("/health").status == 200


def test_the_first_chunk_comes_before_the_last_token(roomy):
    connection = asked(roomy, LONG | {"stream": True, "max_tokens": 2000})
    connection.recv(1)
    assert running(roomy) == 1
    connection.close()
    roomy.wait_idle()


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for the engine in /proc")
def test_an_engine_that_is_killed_is_told_of_and_comes_back(roomy):
    restarts = roomy.metric("outrider:engine_restarts_total")
    streamed, whole = (asked(roomy, LONG | {"stream": stream}) for stream in (True, False))
    wait_for(lambda: running(roomy) == 2)
    (engine,) = children(roomy.process.pid)
    os.kill(engine, signal.SIGKILL)
    said = b""
    while b"[DONE]" not in said:
        said += streamed.recv(65536)
    assert b'"code":"engine_unavailable"' in said
    answer = b""
    while b"}}" not in answer:
        answer += whole.recv(65536)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"The engine's process died in the middle of this text" in answer
    refused = roomy.get("/health")
    assert refused.status == 503
    assert int(refused.headers["Retry-After"]) >= 1
    wait_for(lambda: roomy.get("/health").status == 200, 60)
    assert roomy.post("/v1/completions", {"prompt": "b", "max_tokens": 5}).status == 200
    assert roomy.metric("outrider:engine_restarts_total") == restarts + 1
    assert [line for line in roomy.log_lines() if line["event"] == "engine lost"]
    streamed.close()
    whole.close()


def test_a_server_that_is_told_to_stop_lets_what_runs_end(tiny, tmp_path):
    log = tmp_path / "log"
    process = start(tiny, "--served-name", "tiny", "--max-len", 4096, log=log)
    try:
        port = wait_ready(process, log)
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            body = json.dumps({"model": "tiny"} | LONG | {"max_tokens": 1500, "stream": True}).encode()
            connection.sendall(HEAD % len(body) + body)
            said = connection.recv(100)
            process.send_signal(signal.SIGTERM)
            while chunk := connection.recv(65536):
                said += chunk
        assert b"data: [DONE]" in said
        assert b'"finish_reason":"length"' in said
        assert process.wait(20) == 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
    finally:
        process.kill()
        process.wait()
