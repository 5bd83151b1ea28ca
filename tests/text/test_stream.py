import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text.stand_ins import byte_fallback, byte_level, metaspace

from outrider.errors import UsageError
from outrider.text.stream import Detokenizer, StopStrings
from outrider.text.tokenizer import Tokenizer

TOKENIZERS = {
    "byte level": Tokenizer(byte_level()),
    "byte fallback": Tokenizer(byte_fallback()),
    "metaspace": Tokenizer(metaspace()),
}


def parts(tokenizer, ids, *, skip_special=True):
    stream = Detokenizer(tokenizer, skip_special=skip_special)
    return [*(stream.push(token_id) for token_id in ids), stream.flush()]


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("skip_special", [True, False])
@settings(max_examples=100, deadline=None, derandomize=True)
@given(data=st.data())
def test_pushed_and_flushed_text_is_the_decoding_of_all_tokens(name, skip_special, data):
    tokenizer = TOKENIZERS[name]
    # Ids beyond the vocabulary stand for a model's padded head.
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size + 2), max_size=80))
    joined = "".join(parts(tokenizer, ids, skip_special=skip_special))
    assert joined == tokenizer.decode(ids, skip_special=skip_special)


@pytest.mark.parametrize("name", ["byte level", "byte fallback"])
@settings(max_examples=100, deadline=None, derandomize=True)
@given(text=st.text(alphabet=st.sampled_from("a the\n日本é👍🏽\u0301ไ<>"), max_size=40))
def test_whole_characters_never_show_a_replacement_on_the_way(name, text):
    tokenizer = TOKENIZERS[name]
    ids = tokenizer.encode(text, add_special=False)
    shown = parts(tokenizer, ids)
    assert "".join(shown) == text
    assert not any("\ufffd" in part for part in shown)


def test_a_character_is_shown_with_its_last_byte_and_not_before():
    tokenizer = TOKENIZERS["byte level"]
    ids = tokenizer.encode("x👍", add_special=False)
    assert parts(tokenizer, ids) == ["x", "", "", "👍", ""]


def test_a_half_character_at_the_end_is_shown_by_the_flush_alone():
    tokenizer = TOKENIZERS["byte level"]
    ids = tokenizer.encode("é", add_special=False)[:1]
    assert parts(tokenizer, ids) == ["", "\ufffd"]


def test_a_run_of_byte_tokens_is_shown_as_a_whole():
    tokenizer = TOKENIZERS["byte fallback"]
    first, second = tokenizer.token_id("<0xC3>"), tokenizer.token_id("<0xA9>")
    ids = [tokenizer.token_id("a"), first, second, first, tokenizer.token_id("a")]
    # The run ends in half a character, which takes the whole one before it along.
    assert parts(tokenizer, ids) == ["a", "", "", "", "\ufffd\ufffd\ufffda", ""]


def test_a_skipped_token_does_not_take_the_space_of_the_next_one():
    tokenizer = TOKENIZERS["byte fallback"]
    the, end = tokenizer.token_id("▁the"), tokenizer.token_id("<end>")
    assert parts(tokenizer, [the, *[end] * 40, the]) == ["the", *[""] * 40, " the", ""]


class CountingTokenizer(Tokenizer):
    num_decoded = 0

    def decode(self, ids, *, skip_special=True):
        self.num_decoded += len(ids)
        return super().decode(ids, skip_special=skip_special)


@pytest.mark.parametrize("piece", ["a", "Ã"])  # valid text; a lead byte whose rest never comes
def test_the_cost_of_a_token_does_not_grow_with_the_text(piece):
    tokenizer = CountingTokenizer(byte_level())
    stream = Detokenizer(tokenizer)
    token_id = tokenizer.token_id(piece)
    shown = "".join(stream.push(token_id) for _ in range(5000)) + stream.flush()
    assert len(shown) == 5000
    assert tokenizer.num_decoded < 5000 * 20


def test_a_long_run_of_byte_tokens_is_decoded_once():
    tokenizer = CountingTokenizer(byte_fallback())
    stream = Detokenizer(tokenizer)
    token_id = tokenizer.token_id("<0x41>")
    assert [stream.push(token_id) for _ in range(5000)] == [""] * 5000
    assert stream.flush() == "A" * 5000
    assert tokenizer.num_decoded == 5000


def first_stop(text, stops):
    """Try every end, the nearest first: what a reader character by character would find."""
    for end in range(1, len(text) + 1):
        matching = [stop for stop in stops if text[:end].endswith(stop)]
        if matching:
            longest = max(matching, key=len)
            return text[: end - len(longest)], longest
    return text, None


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    chunks=st.lists(st.text(alphabet="ab", max_size=5), max_size=10),
    stops=st.lists(st.text(alphabet="abc", min_size=1, max_size=4), max_size=3),
)
def test_how_a_text_is_cut_does_not_change_where_it_stops(chunks, stops):
    stream = StopStrings(stops)
    shown, matched = "", None
    for chunk in chunks:
        text, matched = stream.push(chunk)
        shown += text
    shown += stream.flush()
    assert (shown, matched) == first_stop("".join(chunks), stops)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(text=st.text(alphabet="ab", max_size=20), stop=st.text(alphabet="ab", min_size=1, max_size=4))
def test_only_a_possible_start_of_a_stop_string_is_held_back(text, stop):
    stream = StopStrings([stop])
    shown, matched = stream.push(text)
    if matched is None:
        held = text.removeprefix(shown)
        assert stop.startswith(held)
        longer = [n for n in range(len(held) + 1, len(stop)) if text.endswith(stop[:n])]
        assert longer == []


def test_the_stop_string_that_is_complete_first_wins():
    assert StopStrings(["abcd", "bc"]).push("xabcd") == ("xa", "bc")


def test_the_longest_wins_among_those_complete_at_the_same_character():
    assert StopStrings(["c", "abc", "bc"]).push("xabcd") == ("x", "abc")


def test_nothing_is_shown_after_a_stop_string():
    stream = StopStrings(["END"])
    assert stream.push("one EN") == ("one ", None)
    assert stream.push("D two") == ("", "END")
    assert stream.push("three") == ("", "END")
    assert stream.flush() == ""


def test_without_stop_strings_all_text_passes():
    stream = StopStrings([])
    assert stream.push("any") == ("any", None)
    assert stream.flush() == ""


def test_an_empty_stop_string_is_refused():
    with pytest.raises(UsageError, match="empty"):
        StopStrings(["x", ""])
