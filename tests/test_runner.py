"""The Python API on a tiny model: texts, streams side by side, endings, what stays behind."""

import fakes
import pytest
from tiny_model import EOS, write_tiny_model

import outrider
from outrider.engine.params import SamplingParams
from outrider.errors import UsageError


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    return outrider.load(str(write_tiny_model(tmp_path_factory.mktemp("m") / "tiny")), slots=2, max_len=256)


def free_text(runner, prompt="the ", **settings):
    return runner.generate(prompt, ignore_eos=True, **{"max_tokens": 30, **settings})


def test_pieces_joined_are_the_text(runner):
    result = free_text(runner)
    assert "".join(piece.text for piece in result.pieces) == result.text
    assert len(result.tokens) == 30
    assert result.finish_reason == "length"


def test_a_chat_is_rendered_with_the_models_template(runner):
    messages = [{"role": "user", "content": "hi"}]
    assert runner.tokenizer.decode(runner.encode(messages), skip_special=False).endswith("<turn>assistant\n")


def test_a_text_ends_with_a_stop_token_and_keeps_its_piece(runner):
    tokens = free_text(runner).tokens
    result = free_text(runner, stop_token_ids=(tokens[5],))
    assert result.finish_reason == "stop"
    assert result.tokens == tokens[: tokens.index(tokens[5]) + 1]


def test_the_models_own_end_token_ends_the_text_and_is_not_shown(runner):
    end = runner.tokenizer.token_id(EOS)
    result = runner.generate("the ", max_tokens=30, logit_bias={end: 1000.0})
    assert (result.tokens, result.text, result.finish_reason) == ((end,), "", "stop")


def test_a_text_ends_before_a_stop_string(runner):
    text = free_text(runner).text
    stop = text[7:10]
    result = free_text(runner, stop=(stop,))
    assert result.finish_reason == "stop"
    assert result.text == text[: text.index(stop)]


def test_streams_read_in_turns_each_get_their_own_text(runner):
    wanted = [free_text(runner, prompt).text for prompt in ("the ", "in a ")]
    streams = [runner.stream(prompt, max_tokens=30, ignore_eos=True) for prompt in ("the ", "in a ")]
    texts = ["", ""]
    for _ in range(30):
        for index, stream in enumerate(streams):
            texts[index] += next(stream).text
    assert texts == wanted


def test_a_stream_that_is_closed_leaves_nothing_behind(runner):
    stream = runner.stream("the ", max_tokens=30, ignore_eos=True)
    next(stream)
    stream.close()
    assert not runner.engine.busy


def test_a_stream_that_was_read_to_its_end_gives_the_whole_completion(runner):
    stream = runner.stream("the ", max_tokens=30, ignore_eos=True)
    pieces = tuple(stream)
    found, wanted = stream.completion(), free_text(runner)
    assert (found.pieces, found.text, found.finish_reason) == (pieces, wanted.text, "length")
    assert found.accepted_by_depth == ()


def test_a_stream_that_was_left_gives_what_was_read_and_then_no_more(runner):
    drafted = runner.with_drafter("ngram", costs=fakes.Free(learn=False))
    stream = drafted.stream("the the the the ", max_tokens=30, ignore_eos=True)
    read = [next(stream)]
    while not read[-1].depth:  # stop inside an accepted path: its rest has come, and was not read
        read.append(next(stream))
    found = stream.completion()
    assert (found.pieces, found.finish_reason) == (tuple(read), "cancelled")
    assert found.accepted_by_depth == (1,)
    assert list(stream) == []
    assert not drafted.engine.busy


def test_a_stream_that_is_forgotten_leaves_nothing_behind(runner):
    for _piece in runner.stream("the ", max_tokens=30, ignore_eos=True):
        break
    assert not runner.engine.busy


def test_a_stream_in_which_something_fails_leaves_nothing_behind(runner, monkeypatch):
    stream = runner.stream("the ", max_tokens=30, ignore_eos=True)
    next(stream)

    def fail():
        raise KeyboardInterrupt

    monkeypatch.setattr(runner.engine, "step", fail)
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    assert not runner.engine.busy
    assert stream.completion().finish_reason == "cancelled"


def test_a_runner_of_another_length_keeps_its_models_and_its_drafter(runner):
    other = runner.with_drafter("ngram").resized(40)
    assert (other.max_len, other.drafter.name, other.target) == (40, "ngram", runner.target)
    assert len(free_text(other, "a", max_tokens=39).tokens) == 39
    with pytest.raises(UsageError, match="the context holds 40"):
        free_text(other, "a", max_tokens=40)


def test_a_batch_with_a_prompt_that_does_not_fit_leaves_nothing_behind(runner):
    with pytest.raises(UsageError, match="the context holds 256"):
        runner.generate_many(["the ", "the " * 300], max_tokens=4)
    assert not runner.engine.busy


def test_more_texts_than_slots_come_back_in_order(runner):
    prompts = ["a", "the in", "er", "xyz", "the"]
    alone = [free_text(runner, prompt).tokens for prompt in prompts]
    together = runner.generate_many(prompts, max_tokens=30, ignore_eos=True)
    assert [result.tokens for result in together] == alone


def test_each_drafter_gives_the_same_text(runner):
    plain = free_text(runner, "the the the the ")
    drafted = free_text(runner.with_drafter("ngram"), "the the the the ")
    assert drafted.tokens == plain.tokens


def test_logprobs_come_with_each_piece(runner):
    piece = free_text(runner, logprobs=2).pieces[0]
    assert piece.logprob is not None
    assert piece.logprob.top[0] == (piece.token, pytest.approx(piece.logprob.chosen))


def test_rounds_and_their_times_belong_together(runner):
    result = free_text(runner)
    assert len(result.round_seconds) == len(result.rounds) == 30
    assert result.decode_seconds == pytest.approx(sum(result.round_seconds))


def test_random_weights_of_the_same_shapes_need_no_weights_on_disk(tmp_path):
    folder = write_tiny_model(tmp_path / "shapes")
    (folder / "model.safetensors").unlink()
    result = outrider.load(str(folder), weights="dummy", max_len=64).generate("the ", max_tokens=3)
    assert len(result.tokens) <= 3


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"drafter": "ngrm"}, "Did you mean 'ngram'"),
        ({"dtype": "float8"}, "Unknown dtype 'float8'"),
        ({"device": "tpu9"}, "Device 'tpu9' is not usable"),
    ],
)
def test_what_load_cannot_do_is_said(runner, settings, words):
    with pytest.raises(UsageError, match=words):
        outrider.load(str(runner.checkpoint.source.path), **settings)


def test_settings_given_twice_or_unknown_are_refused(runner):
    with pytest.raises(UsageError, match="twice"):
        runner.generate("a", SamplingParams(), max_tokens=3)
    with pytest.raises(UsageError, match="'temprature'"):
        runner.generate("a", temprature=1.0)
