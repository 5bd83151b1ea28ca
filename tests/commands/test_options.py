"""Options stand in one table: every command that takes a group has all of it, and it reaches what it sets."""

from dataclasses import dataclass, fields
from typing import Annotated

import pytest
import typer
from typer.main import get_command

from outrider import cli
from outrider.commands import options as o
from outrider.commands.groups import spread
from outrider.drafters.options import DraftOptions
from outrider.engine.params import SamplingParams
from outrider.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Colours:
    front: Annotated[str, typer.Option("--front")] = "black"
    edge: Annotated[list[int] | None, typer.Option("--edge")] = None


def called(words, command):
    app = typer.Typer()
    app.command()(spread(command))
    get_command(app)(words, standalone_mode=False)


def parameters(name):
    return {parameter.name: parameter for parameter in get_command(cli.app).commands[name].params}


def test_a_group_arrives_filled_and_other_parameters_as_they_are():
    seen = []

    def command(name: str, *, colours: Colours, loud: Annotated[bool, typer.Option("--loud")] = False) -> None:
        """Paint."""
        seen.append((name, colours, loud))

    called(["x", "--front", "red", "--edge", "1", "--edge", "2", "--loud"], command)
    called(["y"], command)
    assert seen == [("x", Colours(front="red", edge=[1, 2]), True), ("y", Colours(), False)]


def test_a_command_may_have_defaults_of_its_own():
    seen = []

    def command(*, colours: Colours = Colours(front="blue")) -> None:
        """Paint."""
        seen.append(colours)

    called([], command)
    assert seen == [Colours(front="blue")]


@pytest.mark.parametrize("group", [o.Sampling, o.Drafting, o.Loading])
@pytest.mark.parametrize("command", ["generate", "compare"])
def test_both_commands_have_every_option_of_a_group(command, group):
    assert {field.name for field in fields(group)} <= set(parameters(command))


def test_a_comparison_is_shorter_unless_told_otherwise():
    assert [parameters(name)["max_tokens"].default for name in ("generate", "compare")] == [256, 128]


def test_the_defaults_of_the_options_are_those_of_the_settings():
    assert o.Sampling().params() == SamplingParams()
    assert o.Drafting().options() == DraftOptions()


def test_every_sampling_setting_has_an_option():
    settings = {field.name for field in fields(SamplingParams)} - {"logprobs"}
    assert settings == {field.name.replace("token_id", "token_ids") for field in fields(o.Sampling)}


@pytest.mark.parametrize("command", ["generate", "compare"])
def test_draft_options_reach_the_loading_of_models(run, command, monkeypatch):
    seen = {}

    def load(model, **settings):
        seen.update(settings)
        raise UsageError("far enough")

    monkeypatch.setattr("outrider.runner.load", load)
    words = "--draft-model o/d --draft-tokens 3 --budget 40 --spine --no-draft-sampling --allow a --allow b"
    loading = "--drafter ddtree --dtype bfloat16 --device cuda:1"
    assert "far enough" in run(command, "m", "hi", *words.split(), *loading.split()).err
    assert seen["draft_model"] == "o/d"
    assert seen["draft"] == DraftOptions(tokens=3, budget=40, spine=True, sampled=False, allow=("a", "b"))
    assert (seen["dtype"], seen["device"]) == ("bfloat16", "cuda:1")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--budget", "many"], "--budget 'many': expected auto"),
        (["--budget", "0"], "from 1 to 1023"),
        (["--draft-tokens", "0"], "at least 1"),
        (["--draft-tokens", "few"], "--draft-tokens"),
    ],
)
def test_bad_draft_options_are_refused_before_the_model_is_looked_for(run, words, part):
    assert part in run("generate", "no-such-model", "hi", *words).check_one_line_error()
