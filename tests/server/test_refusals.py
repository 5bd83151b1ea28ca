"""What is refused, and how: OpenAI's shape, a field where there is one, and words that help. Never a 500."""

import json
import socket
import time

import pytest
from server.serving import served

CHAT = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
TEXT = {"prompt": "hi", "max_tokens": 4}
BAD = [
    ("chat", {"messages": []}, "messages", "at least 1"),
    ("chat", {"messages": [{"role": "wizard", "content": "x"}]}, "messages.0.role", "system"),
    ("chat", {"max_tokens": 0}, "max_tokens", "greater than or equal to 1"),
    ("chat", {"max_tokens": "4"}, "max_tokens", "integer"),
    ("chat", {"temperature": 3}, "temperature", "less than or equal to 2"),
    ("chat", {"top_logprobs": 2}, "top_logprobs", "needs logprobs"),
    ("chat", {"n": 99}, "n", "at most 16"),
    ("chat", {"stream_options": {"include_usage": True}}, "stream_options", "needs stream"),
    ("chat", {"draft_lenght": 3}, "draft_lenght", "Unknown field"),
    ("chat", {"outrider": {"rounds": True}}, "outrider.rounds", "needs stream"),
    ("chat", {"outrider": {"lenght": 1}}, "outrider.lenght", "Unknown field"),
    ("chat", {"response_format": {"type": "json_object"}}, "response_format.type", "text"),
    ("chat", {"chat_template_kwargs": {"messages": "x"}}, "chat_template_kwargs", "may not set"),
    ("chat", {"messages": [{"role": "user", "content": "\ud800"}]}, None, "surrogate"),
    ("chat", {"max_tokens": 100_000}, None, "the context of this server holds 512"),
    ("text", {"prompt": []}, "prompt", "at least 1"),
    ("text", {"prompt": [99_999_999]}, None, "0 to 264"),
    ("text", {"logit_bias": {"99999999": 1}}, None, "0 to 264"),
    ("text", {"logit_bias": {"x": 1}}, "logit_bias.x", "pattern"),
    ("text", {"best_of": 4}, "best_of", "Drop best_of"),
    ("text", {"temperature": 1e-6}, None, "1e-4"),
    ("text", {"stop": [""]}, "stop", "at least 1 character"),
    ("text", {"prompt": ""}, "prompt", "no tokens"),
]


@pytest.mark.parametrize(("kind", "change", "param", "said"), BAD)
def test_what_cannot_be_done_is_a_400_that_says_what_and_where(ask, kind, change, param, said):
    path, wishes = ("/v1/chat/completions", CHAT) if kind == "chat" else ("/v1/completions", TEXT)
    answer = ask(path, wishes | change)
    error = answer.json["error"]
    assert answer.status == 400, error
    assert error.keys() == {"message", "type", "param", "code"}
    assert said in error["message"]
    assert param is None or str(error["param"]).startswith(param)


def test_another_model_is_not_found(server):
    answer = server.post("/v1/completions", TEXT | {"model": "gpt-9"})
    assert (answer.status, answer.json["error"]["code"]) == (404, "model_not_found")
    assert "'tiny'" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe\x00", b'{"model": "tiny", "prompt": "\xc3\x28"}', b"[" * 100_000, b"null", b'{"a": NaN}'],
)  # fmt: skip
def test_bodies_that_are_no_request_are_refused(server, body):
    answer = server.send("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    assert answer.status == 400, answer.body
    assert answer.json["error"]["type"] == "invalid_request_error"


def test_a_form_from_a_web_page_is_no_request(server):
    answer = server.send(
        "POST", "/v1/completions", json.dumps(TEXT | {"model": "tiny"}).encode(), {"Content-Type": "text/plain"}
    )
    assert answer.status == 400


def test_what_is_not_there_is_said_in_the_same_shape(server):
    assert server.get("/v2/none").json["error"]["type"] == "not_found_error"
    assert server.get("/v1/completions").status == 405


def test_a_body_of_100_megabytes_is_refused_before_it_is_read(server):
    connection = server.connect()
    connection.putrequest("POST", "/v1/completions")
    connection.putheader("Content-Length", str(100 << 20))
    connection.putheader("Content-Type", "application/json")
    connection.endheaders()
    response = connection.getresponse()
    assert response.status == 413
    assert json.loads(response.read())["error"]["code"] == "too_large"
    connection.close()


def test_a_body_without_a_length_is_cut_off_where_it_gets_too_large(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as open_socket:
        open_socket.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                            b"Transfer-Encoding: chunked\r\n\r\n")  # fmt: skip
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        try:
            for _ in range(1600):  # 100 MB, if it were read
                open_socket.sendall(chunk)
        except OSError:  # the server has closed
            pass
        said = open_socket.recv(4096)
    assert b" 413 " in said.split(b"\r\n")[0]
    assert server.get("/health").status == 200


def test_a_name_that_is_not_ours_is_refused(server):
    """A web page whose name was pointed at this machine sends its own name."""
    answer = server.send("GET", "/v1/models", None, {"Host": "evil.example:8000"})
    assert answer.status == 421
    assert server.send("GET", "/v1/models", None, {"Host": f"localhost:{server.port}"}).status == 200


def test_no_cors_header_is_ever_sent(server):
    answer = server.get("/v1/models", Origin="https://evil.example")
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_request_ids_come_back_and_stand_in_the_log(server):
    assert server.post("/v1/completions", TEXT, **{"X-Request-ID": "mine-1"}).headers["X-Request-ID"] == "mine-1"
    assert (
        server.get("/health", **{"X-Request-ID": "not fit\tfor a log"}).headers["X-Request-ID"] != "not fit\tfor a log"
    )
    (line,) = [line for line in server.log_lines() if line.get("id") == "mine-1"]
    assert line["prompt_tokens"] == 2
    assert line["completion_tokens"] == 4
    assert "hi" not in line.values()


@pytest.fixture(scope="module")
def guarded(tiny, tmp_path_factory):
    """A server with keys, one slot, room for one that waits, and little time."""
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text("first-key\nsecond-key\n")
    words = ["--api-key-file", keys, "--slots", 1, "--waiting", 1, "--deadline", 1.5, "--max-len", 4096]
    with served(tiny, *words) as running:
        yield running


def test_keys_are_asked_for_everywhere_but_health_and_page(guarded):
    assert guarded.get("/health").status == 200
    assert guarded.get("/").status == 200
    for path in ("/v1/models", "/metrics", "/version", "/openapi.json"):
        assert guarded.get(path).status == 401
        assert guarded.get(path, Authorization="Bearer wrong").status == 401
        assert guarded.get(path, Authorization="first-key").status == 401
        assert guarded.get(path, Authorization="Bearer second-key").status == 200
    assert guarded.get("/v1/models", Authorization="Bearer \xff").json["error"]["type"] == "authentication_error"


def test_a_full_queue_says_when_to_come_back_and_a_deadline_ends_what_takes_too_long(guarded):
    key = {"Authorization": "Bearer first-key", "Content-Type": "application/json"}
    long = json.dumps({"model": "tiny", "prompt": "a", "max_tokens": 4000, "ignore_eos": True}).encode()
    connections = [guarded.connect() for _ in range(2)]
    begun = time.monotonic()
    for connection in connections:
        connection.request("POST", "/v1/completions", long, key)
        time.sleep(0.1)
    refused = guarded.send("POST", "/v1/completions", long, key)
    assert refused.status == 429
    assert int(refused.headers["Retry-After"]) >= 1
    assert "1 of at most 1 texts wait for one of 1 slots" in refused.json["error"]["message"]
    for connection in connections:
        response = connection.getresponse()
        assert response.status == 504
        assert json.loads(response.read())["error"]["code"] == "timeout"
        connection.close()
    assert 1.4 < time.monotonic() - begun < 10
    short = json.dumps({"model": "tiny", "prompt": "a", "max_tokens": 2}).encode()
    assert guarded.send("POST", "/v1/completions", short, key).status == 200


def test_a_stream_that_passes_the_deadline_ends_with_an_error_event(guarded):
    wishes = {"prompt": "a", "max_tokens": 4000, "ignore_eos": True, "stream": True}
    events = guarded.post("/v1/completions", wishes, Authorization="Bearer first-key").events()
    assert events[-1]["error"]["code"] == "timeout"
    assert len(events) > 2
