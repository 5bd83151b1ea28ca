"""``outrider generate``: where prompts come from, what goes to which stream, and the record."""

import io
import json
import signal

import pytest
from rich.console import Console

from outrider.commands import streaming
from outrider.results import GenerationResult
from outrider.runner import load
from outrider.transcript import Piece

FAST = ("--ignore-eos", "--max-tokens", "24")


@pytest.fixture(scope="module")
def runner(tiny):
    return load(str(tiny))


def test_the_text_goes_to_stdout_and_the_summary_to_stderr(run, tiny, runner):
    seen = run("generate", tiny, "abc abc abc", *FAST)
    wanted = runner.generate("abc abc abc", max_tokens=24, ignore_eos=True)
    assert seen.code == 0
    assert seen.out == wanted.text + "\n"
    for part in ("24 tokens", "tokens/s", "24 rounds, nothing drafted", "ended by length"):
        assert part in seen.err


def test_drafts_change_the_summary_and_not_the_text(run, tiny):
    plain = run("generate", tiny, "abc abc abc", *FAST)
    drafted = run("generate", tiny, "abc abc abc", *FAST, "--drafter", "ngram")
    assert drafted.out == plain.out
    assert "acceptance length" in drafted.err
    assert "acceptance rate" in drafted.err


def test_the_prompt_may_come_from_a_file_or_from_standard_input(run, tiny, tmp_path, monkeypatch):
    (tmp_path / "prompt.txt").write_text("abc é abc", encoding="utf-8")
    texts = [run("generate", tiny, "abc é abc", *FAST).out]
    texts.append(run("generate", tiny, "--file", tmp_path / "prompt.txt", *FAST).out)
    monkeypatch.setattr("sys.stdin", io.StringIO("abc é abc"))
    texts.append(run("generate", tiny, "-", *FAST).out)
    monkeypatch.setattr("sys.stdin", io.StringIO("abc é abc"))
    texts.append(run("generate", tiny, *FAST).out)
    assert len(set(texts)) == 1


def test_chat_renders_the_models_template_with_the_system_turn(run, tiny, runner):
    seen = run("generate", tiny, "hello", "--chat", "--system", "be brief", "--json", *FAST)
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}]
    assert json.loads(seen.out)["prompt_tokens"] == len(runner.encode(messages))


def test_json_is_the_record_and_nothing_else(run, tiny):
    seen = run("generate", tiny, "abc abc", *FAST, "--json", "--drafter", "ngram", "--logprobs", "2")
    record = GenerationResult.model_validate_json(seen.out)
    assert seen.err == ""
    assert len(record.tokens) == 24
    assert record.drafter == "ngram"
    assert record.dtype == "float32"
    assert record.rounds == sum(token.source == "target" for token in record.tokens)
    assert all(len(token.top_logprobs or ()) == 2 for token in record.tokens)
    assert record.sampling["max_tokens"] == 24
    assert record.position_rates[0] == record.conditional_rates[0] > 0
    assert len(record.conditional_rates) == len(record.position_rates)


def test_every_sampling_option_reaches_the_settings(run, tiny):
    words = [
        "--max-tokens",
        "5",
        "--temperature",
        "0.7",
        "--top-k",
        "9",
        "--top-p",
        "0.9",
        "--min-p",
        "0.01",
        "--repetition-penalty",
        "1.1",
        "--presence-penalty",
        "0.2",
        "--frequency-penalty",
        "0.3",
        "--logit-bias",
        "5=-2.5",
        "--logit-bias",
        "6=1",
        "--seed",
        "7",
        "--stop",
        "END",
        "--stop",
        "FIN",
        "--stop-token-id",
        "3",
        "--logprobs",
        "1",
        "--ignore-eos",
    ]
    assert json.loads(run("generate", tiny, "abc", "--json", *words).out)["sampling"] == {
        "max_tokens": 5,
        "temperature": 0.7,
        "top_k": 9,
        "top_p": 0.9,
        "min_p": 0.01,
        "repetition_penalty": 1.1,
        "presence_penalty": 0.2,
        "frequency_penalty": 0.3,
        "logit_bias": {"5": -2.5, "6": 1.0},
        "seed": 7,
        "stop": ["END", "FIN"],
        "stop_token_ids": [3],
        "logprobs": 1,
        "ignore_eos": True,
    }


def test_a_drawn_text_tells_the_seed_that_repeats_it(run, tiny):
    first = run("generate", tiny, "abc", "--temperature", "1", *FAST, "--json")
    record = json.loads(first.out)
    again = run("generate", tiny, "abc", "--temperature", "1", *FAST, "--seed", record["sampling"]["seed"])
    assert again.out == record["text"] + "\n"
    assert f"--seed {record['sampling']['seed']} repeats it" in again.err


def test_dummy_weights_need_only_the_shapes(run, tiny):
    seen = run("generate", tiny, "abc", "--load", "dummy", *FAST)
    assert seen.code == 0
    assert "24 tokens" in seen.err


def test_ctrl_c_ends_the_text_with_a_summary_of_what_came(run, tiny, monkeypatch):
    seen_pieces = []

    def show(piece):
        seen_pieces.append(piece)
        if len(seen_pieces) == 5:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("outrider.commands.generate.shower", lambda: show)
    # A shell that starts us in the background has us ignore Ctrl-C; here it is to be heard.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        seen = run("generate", tiny, "abc", *FAST)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen.code == 130
    assert "5 tokens in" in seen.err
    assert "ended by cancelled" in seen.err
    assert seen.err.endswith("interrupted\n")


def test_accepted_tokens_are_in_colour_on_a_terminal_alone(monkeypatch):
    sheet = io.StringIO()
    console = Console(file=sheet, force_terminal=True, color_system="standard", highlight=False)
    monkeypatch.setattr(streaming, "stdout", lambda: console)
    show = streaming.shower()
    show(Piece("plain [bold]", 1, "target", 0, None))
    show(Piece(" guessed", 2, "draft", 1, None))
    assert sheet.getvalue() == "plain [bold]\x1b[32m guessed\x1b[0m"


def test_tokens_from_further_down_a_tree_have_other_shades():
    assert streaming.shade(0) == ""
    assert [streaming.shade(depth) for depth in range(1, 7)] == list(streaming.SHADES)
    assert streaming.shade(100) == streaming.SHADES[-1]


def test_a_long_text_is_not_wrapped_in_a_pipe(capsys):
    show = streaming.shower()
    show(Piece("\tword " * 60, 1, "draft", 1, None))
    assert capsys.readouterr().out == "\tword " * 60


def test_the_cache_is_just_long_enough(tiny, runner):
    from outrider.commands.opening import sized

    assert sized(runner, [[1] * 10, [1] * 50], max_tokens=30, max_len=None).max_len == 128
    assert sized(runner, [[1] * 10], max_tokens=30, max_len=300).max_len == 300
    assert sized(runner, [[1] * 482], max_tokens=30, max_len=None).max_len == 512
