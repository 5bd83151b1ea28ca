"""A run that was stopped, killed or interrupted leaves what it would have left had it never stopped."""

import os
import signal
from pathlib import Path

import pytest
from safetensors.torch import load_file
from train.toy import lines_of, train

from outrider.errors import UsageError
from outrider.train import state
from outrider.train.learner import Learner

SHORT = {
    "steps": 8, "log_every": 3, "evaluate_every": 4, "checkpoint_every": 5, "rows": 2, "anchors": 4,
    "evaluate_prompts": 2, "evaluate_tokens": 6,
}  # fmt: skip
OF_THE_CLOCK = ("seconds", "target_share", "tokens_per_second")


def log_of(folder: Path) -> list[dict]:
    """Everything but what the clock says."""
    lines = [*lines_of(folder, "step"), *lines_of(folder, "evaluation")]
    return [{key: value for key, value in line.items() if key not in OF_THE_CLOCK} for line in lines]


def check_same(one: Path, other: Path) -> None:
    assert log_of(one) == log_of(other)
    for name in (state.WEIGHTS, state.MEANS):
        first, second = (load_file(state.checkpoints(folder)[-1] / name) for folder in (one, other))
        assert first.keys() == second.keys()
        assert all((first[key] == second[key]).all() for key in first)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken")
    assert train(folder, **SHORT).reason == "complete"
    return folder


def test_a_run_in_pieces_of_one_step_is_bitwise_the_unbroken_run(tmp_path, unbroken):
    for piece in range(1, 8):
        ended = train(tmp_path, resume=True, minutes=0, **SHORT)
        assert (ended.reason, ended.step) == ("time", piece)
    assert train(tmp_path, resume=True, **SHORT).reason == "complete"
    check_same(tmp_path, unbroken)


def test_a_killed_run_loses_at_most_what_came_after_its_checkpoint(tmp_path, unbroken, monkeypatch):
    class Killed(BaseException):
        pass

    honest = Learner.step

    def step(self, *, stop):
        if self.progress.step == 7:
            raise Killed
        return honest(self, stop=stop)

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "step", step)
        with pytest.raises(Killed):
            train(tmp_path, **SHORT)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "step", "st')
    assert [path.name for path in state.checkpoints(tmp_path)] == ["step-000000005"]
    assert train(tmp_path, resume=True, **SHORT).reason == "complete"
    check_same(tmp_path, unbroken)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_step_and_leaves_a_checkpoint(tmp_path, unbroken, number):
    class Interrupting(list):
        def append(self, line):
            if line.startswith("step 3/"):
                os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    ended = train(tmp_path, told=Interrupting(), **SHORT)
    assert (ended.reason, ended.step) == ("interrupted", 4)
    assert ended.checkpoint == state.place(tmp_path, 4)
    assert signal.getsignal(number) is before
    assert train(tmp_path, resume=True, **SHORT).reason == "complete"
    check_same(tmp_path, unbroken)


@pytest.fixture
def interrupts_raise():
    """As in a terminal: what is started in the background may have been told to ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts_raise")
def test_a_second_interrupt_is_not_waited_for(tmp_path):
    class Impatient(list):
        def append(self, line):
            if line.startswith("step 3/"):
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, told=Impatient(), **SHORT)


def test_a_complete_run_has_nothing_left_to_do(tmp_path):
    settings = SHORT | {"steps": 2}
    train(tmp_path, **settings)
    before = (tmp_path / "metrics.jsonl").read_text()
    assert train(tmp_path, resume=True, **settings).step == 2
    assert (tmp_path / "metrics.jsonl").read_text() == before


def test_a_folder_that_holds_a_run_is_not_overwritten(tmp_path, unbroken):
    with pytest.raises(UsageError, match="holds a run, up to step-000000008: go on with --resume"):
        train(unbroken, **SHORT)


@pytest.mark.parametrize(
    ("change", "said"),
    [({"lr": 0.01}, "lr=0.02, now it is 0.01"), ({"steps": 9}, "steps=8, now it is 9"), ({"seed": 1}, "seed=0")],
)
def test_a_run_does_not_go_on_under_other_settings(unbroken, change, said):
    with pytest.raises(UsageError, match=said):
        train(unbroken, resume=True, **SHORT | change)


def test_a_run_does_not_go_on_with_other_data(unbroken):
    with pytest.raises(UsageError, match="other data"):
        train(unbroken, resume=True, **SHORT | {"held_out": 0.2}, samples=fewer())


def fewer():
    from train.rows import MemorySamples
    from train.toy import toy

    samples = toy().samples
    return MemorySamples([samples.tokens(index).tolist() for index in range(150)], samples.responses_M[:150].tolist())


def test_what_moves_no_weight_may_change(tmp_path):
    train(tmp_path, minutes=0, **SHORT)
    changed = SHORT | {"checkpoint_every": 2, "log_every": 1, "keep": 3, "evaluate_prompts": 1}
    assert train(tmp_path, resume=True, **changed).reason == "complete"
    assert len(state.checkpoints(tmp_path)) == 3
