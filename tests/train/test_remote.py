"""Answers from a server: a real one on loopback, well behaved and not."""

import threading
import warnings

import pytest
from tiny_model import BOS, CHAT_TEMPLATE, EOS, byte_tokenizer
from train.openai_stub import Stub, completion, serving

from outrider.errors import UsageError
from outrider.text.tokenizer import Tokenizer
from outrider.train.encoding import Encoder
from outrider.train.prompts import Prompt
from outrider.train.remote import MOST_REFUSED, RemoteWriter, Server
from outrider.train.work import Item


@pytest.fixture(scope="module")
def tokenizer():
    backend = byte_tokenizer()
    return Tokenizer(
        backend, stop_ids={backend.token_to_id(EOS)}, bos_token=BOS, eos_token=EOS, chat_template=CHAT_TEMPLATE
    )


def items_of(tokenizer, *texts, temperature=0.0):
    encoder = Encoder(tokenizer)
    for index, text in enumerate(texts):
        messages = ({"role": "user", "content": text},)
        yield Item(index, Prompt(messages, 0, encoder.encode([messages])[0]), temperature, (1 << 40) + index)


def ask(tokenizer, stub, *texts, temperature=0.0, server=None, **options):
    with serving(stub) as url:
        settings = {"url": url, "at_once": 4, "wait": 0.01} | (server or {})
        writer = RemoteWriter(Server(**settings), tokenizer, **({"max_tokens": 100} | options))
        answers = list(writer.write(items_of(tokenizer, *texts, temperature=temperature)))
    return [text for _, text in sorted((text.item.index, text) for text in answers)]


def test_an_answer_becomes_the_targets_tokens_with_its_stop_token(tokenizer):
    (text,) = ask(tokenizer, Stub(), "the bird")
    assert tokenizer.decode(text.tokens.tolist(), skip_special=False) == f"You said: the bird{EOS}"
    assert text.ended
    assert not text.refusal


def test_a_cut_answer_has_no_stop_token(tokenizer):
    (text,) = ask(tokenizer, Stub(), "a" * 50, max_tokens=20)
    assert len(text.tokens) == 20
    assert not text.ended


def test_every_item_is_answered_and_several_are_asked_at_once(tokenizer):
    meeting = threading.Barrier(3, timeout=20)

    def wait_for_others(body):
        meeting.wait()
        return completion(body)

    texts = [f"prompt {n}" for n in range(12)]
    answers = ask(tokenizer, Stub(wait_for_others), *texts, server={"at_once": 3})
    assert [tokenizer.decode(text.tokens.tolist()) for text in answers] == [f"You said: {text}" for text in texts]


def test_a_request_says_how_to_draw(tokenizer):
    stub = Stub()
    ask(tokenizer, stub, "a", temperature=0.7, top_k=5, top_p=0.9, thinking=False)
    (body,) = stub.asked
    assert body == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "a"}],
        "max_tokens": 100,
        "temperature": 0.7,
        "seed": 0,
        "top_k": 5,
        "top_p": 0.9,
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_a_greedy_request_names_no_cuts(tokenizer):
    stub = Stub()
    ask(tokenizer, stub, "a")
    assert not {"top_k", "top_p", "chat_template_kwargs"} & set(stub.asked[0])


def test_the_model_is_the_one_that_is_there_or_the_one_that_was_named(tokenizer):
    with pytest.raises(UsageError, match=r"lists 2 models: a, b; name one with --server-model"):
        ask(tokenizer, Stub(models=("a", "b")), "x")
    stub = Stub(models=("a", "b"))
    ask(tokenizer, stub, "x", server={"model": "b"})
    assert stub.asked[0]["model"] == "b"


def test_the_address_may_end_with_v1():
    assert Server(url="http://h:1/").base == Server(url="http://h:1/v1/").base == "http://h:1/v1"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda body: completion(body, prompt_tokens=3), "reads the prompt as 3 tokens, the target's template makes"),
        (lambda body: completion(body, completion_tokens=3), "drew 3 tokens, the text makes"),
        (lambda body: completion(body, text="\ufffd", completion_tokens=2), "drew 2 tokens, the text makes 3"),
        (lambda _body: {"choices": []}, "expected choices with a message"),
        (lambda _body: (200, "no json"), "expected choices with a message"),
        (lambda _body: (400, "too\nlong"), r"refuses the request \(400\): too long"),
        (
            lambda _body: {
                "choices": [{"message": {"content": "a", "reasoning_content": "hm"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 2},
            },
            "takes the reasoning",
        ),
    ],
)
def test_an_answer_that_is_no_use_is_refused_with_its_reason(tokenizer, answer, reason):
    import re

    (text,) = ask(tokenizer, Stub(answer), "a")
    assert re.search(reason, text.refusal), text.refusal
    assert len(text.tokens) == 0


def test_an_answer_that_cannot_be_had_back_exactly_is_refused(tokenizer):
    (text,) = ask(tokenizer, Stub(lambda body: completion(body, text="a\u0000b")), "a")
    assert not text.refusal
    (text,) = ask(tokenizer, Stub(lambda body: completion(body, text=f"a{EOS}b", completion_tokens=9)), "a")
    assert "cannot be had back" in text.refusal


def test_answers_that_are_all_no_use_end_the_run(tokenizer):
    stub = Stub(lambda body: completion(body, prompt_tokens=1))
    with pytest.raises(UsageError, match=f"The last {MOST_REFUSED} answers of .* were no use; the latest: the server"):
        ask(tokenizer, stub, *(str(n) for n in range(200)))
    assert len(stub.asked) < 100


def test_a_busy_server_is_asked_again(tokenizer):
    tries = []

    def busy_twice(body):
        tries.append(1)
        return (503, "loading") if len(tries) < 3 else completion(body)

    (text,) = ask(tokenizer, Stub(busy_twice), "a")
    assert text.ended


def test_a_server_that_stays_busy_counts_as_down(tokenizer):
    with pytest.raises(UsageError, match=r"does not answer \(HTTP 503\), asked 4 times"):
        ask(tokenizer, Stub(lambda _body: (503, "loading")), "a")


@pytest.mark.parametrize("status", [404, 401, 500])
def test_a_server_that_fails_is_one_line(tokenizer, status):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UsageError, match=f"answers {status}: broken it is") as caught:
            ask(tokenizer, Stub(lambda _body: (status, "broken\nit is")), "a", "b", "c", "d")
    assert "\n" not in str(caught.value)


def test_a_server_that_is_down_is_one_line(tokenizer):
    with serving(Stub()) as url:
        pass
    writer = RemoteWriter(Server(url=url, wait=0.01), tokenizer, max_tokens=8)
    with pytest.raises(UsageError, match=rf"The server at {url}/v1 does not answer \(.+\), asked 4 times"):
        list(writer.write(items_of(tokenizer, "a")))


def test_an_address_that_is_none_is_one_line(tokenizer):
    writer = RemoteWriter(Server(url="nowhere", wait=0.01), tokenizer, max_tokens=8)
    with pytest.raises(UsageError, match="does not answer"):
        list(writer.write(items_of(tokenizer, "a")))


def test_who_stops_reading_cancels_what_is_in_flight(tokenizer):
    stub = Stub()
    with serving(stub) as url:
        writer = RemoteWriter(Server(url=url, at_once=2, wait=0.01), tokenizer, max_tokens=100)
        answers = writer.write(items_of(tokenizer, *(str(n) for n in range(100))))
        next(answers)
        answers.close()
    assert len(stub.asked) < 10
