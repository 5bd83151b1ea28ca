"""What is said against drafters, their options and the draft model before a model is looked for."""

import pytest
from dflash.drafter_files import write_drafter
from dflash.formats.gguf_files import write_gguf_drafter

from outrider.commands.drafter_check import NEED_WEIGHTS, UNUSED
from outrider.commands.options import Drafting
from outrider.registry import DRAFTERS


@pytest.fixture
def drafter(tmp_path):
    return write_drafter(tmp_path / "drafter")


@pytest.mark.parametrize("command", ["generate", "compare"])
@pytest.mark.parametrize(
    ("drafters", "words", "part"),
    [
        ("none", "--draft-model a/b", "means nothing to --drafter none: drop it, or choose dflash or ddtree"),
        ("ngram", "--draft-model a/b", "--draft-model means nothing to --drafter ngram"),
        ("ngram", "--draft-tokens 3", "--draft-tokens"),
        ("ngram", "--allow vocab_size", "--allow"),
        (
            "dflash",
            "--draft-model a/b --budget 8",
            "means nothing to --drafter dflash: drop it, or choose mtp or ddtree",
        ),
        ("dflash", "--draft-model a/b --spine", "--spine"),
    ],
)
def test_an_option_that_a_drafter_would_pass_over_is_refused(run, command, drafters, words, part):
    line = run(command, "no-such-model", "hi", "--drafter", drafters, *words.split()).check_one_line_error()
    assert part in line


def test_a_comparison_takes_an_option_that_one_of_its_drafters_uses(run):
    words = ["--draft-model", "a/b", "--budget", "8"]
    line = run("compare", "no-such-model", "hi", "--drafter", "ngram,ddtree", *words).check_one_line_error()
    assert "Unknown model 'no-such-model'" in line
    line = run("compare", "no-such-model", "hi", "--drafter", "ngram,dflash", *words).check_one_line_error()
    assert "--budget means nothing to --drafter ngram,dflash" in line


def test_the_tables_speak_of_drafters_and_options_that_there_are():
    assert set(UNUSED) | set(NEED_WEIGHTS) == set(DRAFTERS)
    assert {option for options in UNUSED.values() for option in options} <= set(vars(Drafting()))


@pytest.mark.parametrize("command", ["generate", "compare"])
def test_a_drafter_without_its_draft_model_is_said_before_the_model_is_looked_for(run, command):
    line = run(command, "no-such-model", "hi", "--drafter", "ddtree").check_one_line_error()
    assert "Drafter 'ddtree' needs a draft model: give --draft-model" in line


def test_a_draft_model_that_is_no_path_and_no_name_of_the_hub(run, tiny):
    line = run("generate", tiny, "hi", "--drafter", "dflash", "--draft-model", "gone").check_one_line_error()
    assert "Draft model 'gone': expected a folder, a GGUF file, or owner/name" in line


@pytest.mark.parametrize("words", [("generate", "T", "hi", "--drafter", "dflash", "--draft-model"), ("inspect",)])
def test_weights_without_a_config_lead_to_repair(run, tiny, drafter, words):
    (drafter / "config.json").unlink()
    words = [str(tiny) if word == "T" else word for word in words]
    line = run(*words, drafter).check_one_line_error()
    assert f"has weights and no config.json. Fetch it, or let outrider repair {drafter} --target MODEL" in line


def test_a_drafter_in_the_place_of_a_target_is_called_one(run, drafter, tmp_path):
    gguf = write_gguf_drafter(tmp_path / "d.gguf", {"attention_bias": False})
    for path in (drafter, gguf):
        for words in (("generate", path, "hi"), ("compare", path, "hi"), ("inspect", drafter, "--target", path)):
            assert f"{path} is a drafter, and a target was expected" in run(*words).check_one_line_error()


def test_a_damaged_target_is_not_called_a_drafter(run, tiny, tmp_path):
    (tmp_path / "config.json").write_text((tiny / "config.json").read_text())
    assert "has no weights" in run("generate", tmp_path, "hi").check_one_line_error()


def test_a_seed_is_promised_to_repeat_a_text_only_where_it_does(run, tiny, drafter):
    words = ("generate", tiny, "hi", "--max-tokens", "3", "--temperature", "1", "--seed", "5")
    weights = ("--draft-model", drafter)
    adaptive = run(*words, "--drafter", "dflash", *weights)
    assert "--seed 5 may give another text next time" in adaptive.err
    for more in (
        ("--drafter", "dflash", *weights, "--draft-tokens", "3"),
        ("--drafter", "dflash", *weights, "--no-draft-sampling"),
        ("--drafter", "ddtree", *weights),
        (),
    ):
        assert ", --seed 5 repeats it" in run(*words, *more).err
