"""Prompts as the target is served them: through its template, each once."""

import pytest
from tiny_model import BOS, CHAT_TEMPLATE, EOS, TURN, byte_tokenizer

from outrider.errors import CheckpointError, UsageError
from outrider.text.tokenizer import Tokenizer
from outrider.train import prompts
from outrider.train.encoding import Encoder
from outrider.train.prompts import gather
from outrider.train.rows import Row, Rows

THINKING = CHAT_TEMPLATE + "{% if enable_thinking is defined and not enable_thinking %}<none>{% endif %}"


def tokenizer_of(template: str | None = CHAT_TEMPLATE) -> Tokenizer:
    backend = byte_tokenizer()
    stops = {backend.token_to_id(EOS)}
    return Tokenizer(backend, stop_ids=stops, bos_token=BOS, eos_token=EOS, chat_template=template)


def rows_of(*texts: str, name: str = "file") -> Rows:
    return Rows(name, [Row(({"role": "user", "content": text},), name) for text in texts])


def gathered(*places: Rows, template: str | None = CHAT_TEMPLATE, longest: int = 100, report=lambda _line: None):
    return gather(places, Encoder(tokenizer_of(template)), longest=longest, report=report)


def test_a_prompt_goes_through_the_chat_template():
    (prompt,) = gathered(rows_of("Hi")).by_source[0]
    assert tokenizer_of().decode(prompt.tokens, skip_special=False) == f"{BOS}{TURN}user\nHi{EOS}{TURN}assistant\n"


def test_without_a_template_a_prompt_is_the_text():
    (prompt,) = gathered(rows_of("Hi"), template=None).by_source[0]
    assert tokenizer_of().decode(prompt.tokens, skip_special=False) == "Hi"


@pytest.mark.parametrize(("thinking", "end"), [(None, "\n"), (True, "\n"), (False, "<none>")])
def test_thinking_is_passed_to_a_template_that_knows_it(thinking, end):
    encoder = Encoder(tokenizer_of(THINKING), thinking=thinking)
    assert encoder.tokenizer.decode(
        encoder.encode([({"role": "user", "content": "a"},)])[0], skip_special=False
    ).endswith(end)


@pytest.mark.parametrize(("thinking", "option"), [(True, "--thinking"), (False, "--no-thinking")])
def test_thinking_is_refused_where_the_template_does_not_know_it(thinking, option):
    with pytest.raises(UsageError, match=f"knows no enable_thinking; leave out {option}"):
        Encoder(tokenizer_of(), thinking=thinking)


def test_a_prompt_that_is_there_already_is_dropped():
    found = gathered(rows_of("a", "b", "a"), rows_of("b", "c", name="other"))
    assert [len(prompts) for prompts in found.by_source] == [2, 1]
    assert (found.sources, found.counts.duplicates, found.counts.rows) == (("file", "other"), 2, 5)


def test_a_prompt_that_is_too_long_is_dropped():
    found = gathered(rows_of("a", "b" * 99))
    assert (len(found), found.counts.too_long) == (1, 1)


def test_nothing_left_says_why():
    with pytest.raises(UsageError, match=r"no prompts left: of 1 rows 0 were broken and 1 longer than 100 tokens"):
        gathered(rows_of("b" * 99))


def test_a_conversation_that_the_template_refuses_is_a_broken_row():
    template = "{% if messages[0].content == 'no' %}{{ raise_exception('not that') }}{% endif %}" + CHAT_TEMPLATE
    lines = []
    found = gathered(rows_of("no", "yes"), template=template, report=lines.append)
    assert (len(found), found.counts.broken) == (1, 1)
    assert lines == [f"file: 1 of 2 rows passed over; the first: {lines[0].partition('first: ')[2]}"]
    assert "not that" in lines[0]


def test_a_text_that_is_no_unicode_is_a_broken_row():
    lines = []
    found = gathered(rows_of("a\ud800", "b"), report=lines.append)
    assert (len(found), found.counts.broken) == (1, 1)
    assert "lone surrogate" in lines[0]


def test_many_texts_are_encoded_as_each_alone(monkeypatch):
    texts = ["the end", "", "a <turn> b", "x" * 500]
    tokenizer = tokenizer_of()
    assert tokenizer.encode_many(texts, add_special=True) == [tokenizer.encode(t, add_special=True) for t in texts]
    with pytest.raises(UsageError, match="lone surrogate"):
        tokenizer.encode_many(["a", "\ud800"], add_special=False)
    monkeypatch.setattr(prompts, "TOGETHER", 2)
    assert len(gathered(rows_of(*"abcdefg"))) == 7


def test_a_broken_template_ends_the_run():
    with pytest.raises(CheckpointError, match="template"):
        gathered(rows_of("a"), template="{{ 1 / 0 }}")


def test_too_many_kinds_are_refused():
    with pytest.raises(UsageError, match="of 256 kinds"):
        gathered(*(rows_of(str(n), name=str(n)) for n in range(256)))


def test_the_digest_knows_prompts_and_sources():
    digests = {
        gathered(rows_of("a", "b")).digest,
        gathered(rows_of("a", "c")).digest,
        gathered(rows_of("a", "b", name="x")).digest,
        gathered(rows_of("a"), rows_of("b", name="x")).digest,
    }
    assert len(digests) == 4
    assert gathered(rows_of("a", "b")).digest == gathered(rows_of("a", "b", "a")).digest


def test_an_empty_turn_is_what_stands_before_the_users_words():
    opening, ends = Encoder(tokenizer_of()).empty_turn()
    tokenizer = tokenizer_of()
    assert tokenizer.decode(opening, skip_special=False) == f"{BOS}{TURN}user\n"
    assert ends == tokenizer.stop_ids


def test_a_turn_may_end_with_a_special_token_that_ends_no_text():
    template = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}<turn>{% endfor %}"
    _, ends = Encoder(tokenizer_of(template)).empty_turn()
    tokenizer = tokenizer_of()
    assert ends == tokenizer.stop_ids | {tokenizer.token_id(TURN)}


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (None, "needs a chat template"),
        ("{{ bos_token }}{% for m in messages %}{{ m.role }}{% endfor %}", "does not show a user turn"),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", "nothing before a user turn"),
    ],
)
def test_a_template_without_a_user_turn_cannot_open_one(template, reason):
    with pytest.raises(UsageError, match=reason):
        Encoder(tokenizer_of(template)).empty_turn()
