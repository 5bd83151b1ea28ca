"""Each way in which a run can go is told from its curves. Logs by formula, not recorded."""

import math
import random

import pytest
from train.synthetic import (
    SLOTS,
    evaluation_line,
    header,
    rates_of,
    run_lines,
    saturating,
    slots_of,
    step_line,
    write_lines,
)

from outrider.train.report.read import read_run
from outrider.train.report.verdict import judge


@pytest.fixture
def verdict(tmp_path):
    return lambda lines: judge(read_run([write_lines(tmp_path / "metrics.jsonl", lines)]))


@pytest.fixture
def verdict_of_text(tmp_path):
    def read(text, **others):
        files = {"train.log": text} | {name.replace("_", "."): other for name, other in others.items()}
        for name, content in files.items():
            (tmp_path / name).write_text(content)
        return judge(read_run([tmp_path / name for name in files]))

    return read


def states(verdict):
    return {check.code: check.state for check in verdict.checks}


def why(verdict, code):
    return next(check.text for check in verdict.checks if check.code == code)


def changed(kind, change, *, long=1.0, steps=4000):
    """A run in whose lines of one kind something is changed; ``change`` takes the share of the run."""
    noise = random.Random(1)  # noqa: S311 -- scatter, no secret
    lines = [header()]
    for step in range(20, steps + 1, 20):
        share = long * step / 4000
        lines.append(step_line(step, share, noise, **(change(share) if kind == "step" else {})))
        if step % 200 == 0:
            lines.append(evaluation_line(step, share, noise, **(change(share) if kind == "evaluation" else {})))
    return lines


def test_a_run_that_gains_is_still_improving_and_says_how_much_is_to_come(verdict):
    found = verdict(run_lines())
    assert found.status == "improving"
    assert found.headline.startswith("Still improving: another 80 M tokens should add 0.")
    assert found.heading.gain.low > 0
    assert set(states(found).values()) == {"clear"}


def test_the_expected_gain_is_what_the_rest_of_the_curve_brings(verdict):
    half, whole = verdict(run_lines(steps=2000)), run_lines(steps=4000)
    gained = whole[-1]["tau"] - run_lines(steps=2000)[-1]["tau"]
    assert half.heading.gain.low - 0.02 <= gained <= half.heading.gain.high + 0.02


def test_a_run_far_along_its_curve_has_converged(verdict):
    found = verdict(run_lines(long=100))
    assert found.status == "converged"
    assert found.headline.startswith("Converged: another 80 M tokens should add 0.0")


def test_converged_at_almost_nothing_is_told_as_such(verdict):
    slots = slots_of(0.1)
    found = verdict(
        changed("evaluation", lambda _: {"marginal_accuracy": slots, "position_rates": rates_of(slots)}, long=100)
    )
    assert found.status == "over-fitted"  # training is right far more often, in these lines
    level = {"slot_accuracy": slots}
    lines = [
        line | (level if line.get("kind") == "step" else {})
        for line in changed(
            "evaluation", lambda _: {"marginal_accuracy": slots, "position_rates": rates_of(slots)}, long=100
        )
    ]
    found = verdict(lines)
    assert found.status == "converged"
    assert any("hardly more than no drafts" in note for note in found.notes)


def test_a_falling_acceptance_length_on_held_out_prompts_is_over_fitting(verdict):
    def change(share):
        fading = max(0.0, share - 20) / 40
        return {"position_rates": rates_of(slots_of(saturating(share, start=0.02, end=0.75) * (1 - 0.3 * fading)))}

    found = verdict(changed("evaluation", change, long=60))
    assert found.status == "over-fitted"
    assert "Acceptance length fell from" in found.headline
    assert "More kinds of prompts" in found.headline


def test_a_lucky_evaluation_is_not_over_fitting(verdict):
    lines = run_lines(long=100)
    lucky = next(line for line in lines if line.get("kind") == "evaluation" and line["step"] == 2000)
    lucky["tau"] += 0.2
    assert states(verdict(lines))["over-fitted"] == "clear"


def probed(lines, taught, served, **others):
    """The run with experiments on held-out text in its evaluations."""
    losses = {"as_trained": taught, "served": served} | others
    probes = {name: {"loss": loss, "accuracy": []} for name, loss in losses.items()}
    return [line | ({"probes": probes} if line.get("kind") == "evaluation" else {}) for line in lines]


def test_lessons_that_differ_without_a_cause_are_broken(verdict):
    found = verdict(probed(run_lines(), 2.0, 2.5, labels_shifted=2.6))
    assert found.status == "broken"
    assert "no probe says why" in found.headline


def test_short_rounds_of_a_lesson_that_is_served_as_taught_are_suspected(verdict):
    lines = changed("evaluation", lambda _: {"position_rates": [0.2, *[0.1] * (SLOTS - 1)]})
    found = verdict(probed(lines, 2.0, 2.0, labels_shifted=2.6))
    assert states(found)["parted"] == "suspected"
    assert found.status != "broken"


def test_a_rising_held_out_loss_is_over_fitting(verdict):
    change = lambda share: {"held_out_loss": 2.2 + abs(share - 30) / 40}  # noqa: E731
    found = verdict(changed("evaluation", change, long=60))
    assert found.status == "over-fitted"
    assert "Held-out loss rose from 2.2" in found.headline


def test_a_gap_to_held_out_text_in_a_run_that_gains_no_more_is_over_fitting(verdict):
    change = lambda share: {"slot_accuracy": [min(0.97, right + 0.2) for right in slots_of(0.75)]}  # noqa: E731
    found = verdict(changed("step", change, long=100))
    assert found.status == "over-fitted"
    assert "held-out text stays behind" in found.headline
    assert states(found)["over-fitted"] == "suspected"


def test_a_loss_that_is_no_number_is_broken(verdict_of_text):
    text = "".join(f"step={step} loss={9 - step / 100:.3f}\n" for step in range(10, 300, 10)) + "step=300 loss=nan\n"
    found = verdict_of_text(text)
    assert found.status == "broken"
    assert "not a number at step 300" in found.headline


def test_a_loss_that_rises_and_stays_up_is_broken(verdict):
    change = lambda share: {"loss": 3.0 + (4.0 if share > 0.8 else 0.0) + 5 * math.exp(-9 * share)}  # noqa: E731
    found = verdict(changed("step", change))
    assert found.status == "broken"
    assert states(found)["diverged"] == "found"


def test_a_loss_that_stays_is_broken(verdict_of_text):
    found = verdict_of_text(
        "".join(f"step={step} loss={10.8 - step / 1e5:.4f} acc=0.0001\n" for step in range(10, 2000, 10))
    )
    assert found.status == "broken"
    assert "Nothing is learnt" in found.headline


def test_good_training_served_at_1_is_f1_or_f8_where_accuracies_fall_off_as_they_should(verdict):
    found = verdict(changed("evaluation", lambda _: {"position_rates": [0.02, 0.001, *[0.0] * (SLOTS - 2)]}))
    assert found.status == "broken"
    assert states(found)["F1/F8"] == "found"
    assert "They part at slot 1" in found.headline


def test_good_training_served_at_1_is_named_as_f2_where_slot_1_is_too_good(verdict):
    leaking = [0.99, *slots_of(0.5)[1:]]

    def change(_):
        return {"position_rates": [0.03, *[0.0] * (SLOTS - 1)], "marginal_accuracy": leaking}

    found = verdict(changed("evaluation", change))
    assert found.status == "broken"
    assert states(found)["F2"] == "found"
    assert "as if it saw its anchor's features" in found.headline


def test_without_slots_f1_and_f2_are_named_together(verdict_of_text):
    text = "".join(
        f"step={step} loss={4 / step**0.3:.4f} acc={0.75 - 0.5 / step**0.3:.4f}\n" for step in range(50, 5000, 50)
    )
    found = verdict_of_text(text, served_csv="step,tau\n4950,1.02\n")
    assert found.status == "broken"
    assert states(found)["F1/F2"] == "found"
    assert "labels shifted by a place (F1), or a context that reaches to the anchor (F2)" in found.headline


def test_a_tiny_loss_in_the_first_epoch_is_leakage(verdict_of_text):
    text = "".join(f"epoch=0 step={step} loss={0.6 + 8 / step:.4f} acc=0.82\n" for step in range(20, 2000, 20))
    found = verdict_of_text(text)
    assert states(found)["F1/F2"] == "suspected"  # how many words there are is not known
    assert "F1, labels shifted by a place, or F2" in why(found, "F1/F2")


def test_a_tiny_loss_over_a_large_vocabulary_is_broken(verdict):
    change = lambda share: {"loss": 0.5 + math.exp(-9 * share), "slot_accuracy": [0.9] * SLOTS}  # noqa: E731
    lines = [line for line in changed("step", change) if line["kind"] != "evaluation"]
    found = verdict(lines)
    assert found.status == "broken"
    assert states(found)["F1/F2"] == "found"


def test_slot_1_alive_and_later_slots_dead_is_f8(verdict):
    def change(share):
        slots = slots_of(saturating(share, start=0.02, end=0.75))
        return {"position_rates": rates_of(slots, [0.9, *[0.1] * (SLOTS - 1)])}

    found = verdict(changed("evaluation", change))
    assert found.status == "broken"
    assert states(found)["F8"] == "found"


def test_an_even_loss_over_all_slots_makes_f3_suspected(verdict):
    def change(share):
        return {"position_rates": rates_of(slots_of(saturating(share, start=0.02, end=0.75)), 0.8)}

    found = verdict(changed("evaluation", change))
    assert states(found)["F3"] == "suspected"
    assert found.status == "improving"  # prompts of another kind would look the same


def test_anchors_on_one_place_are_f11(verdict):
    found = verdict(changed("step", lambda _: {"anchor_phases": [0.9, *[0.1 / SLOTS] * SLOTS]}))
    assert found.status == "broken"
    assert "fixed grid" in found.headline
    assert states(found)["F11"] == "found"


def test_documents_without_anchors_are_f11(verdict):
    found = verdict(changed("step", lambda _: {"starved": 0.3}))
    assert found.status == "broken"
    assert "30% of the documents" in found.headline


def test_a_gap_by_slot_makes_f11_suspected_where_anchors_are_not_logged(verdict):
    change = lambda _: {"slot_accuracy": [0.9] * SLOTS, "anchor_phases": [], "starved": None}  # noqa: E731
    found = verdict(changed("step", change))
    assert states(found)["F11"] == "suspected"


def test_what_the_logs_do_not_hold_is_not_examined(verdict_of_text):
    text = "".join(f"step={step} loss={2 + 40 / step**0.5:.4f}\n" for step in range(50, 5000, 50))
    found = verdict_of_text(text)
    assert found.status == "improving"
    assert {code for code, state in states(found).items() if state == "not examined"} == {
        "F1", "F2", "F3", "F8", "F11", "over-fitted",
    }  # fmt: skip
    assert found.notes[0].startswith("Served acceptance: not examined")
    assert "training loss" in found.headline


def test_a_few_lines_leave_it_undecided(verdict_of_text):
    found = verdict_of_text("step=10 loss=9.0 acc=0.01\nstep=20 loss=8.0 acc=0.02\n")
    assert found.status == "undecided"
    assert "too few measurements" in found.headline


def test_a_learning_rate_at_its_end_is_noted(verdict):
    found = verdict(changed("step", lambda share: {"lr": 6e-4 * (1 - share) + 1e-9}))
    assert any(note.startswith("The learning rate has come to its end") for note in found.notes)


def test_published_curves_of_other_trainers_are_still_improving(verdict_of_text):
    # SpecForge#469, which asked where the end is: acceptance length on a benchmark; the paper's own drafter has 5.97.
    lengths = {60_000: 3.18, 80_000: 3.26, 100_000: 3.34, 142_000: 3.55}
    log = "".join(f"step={step} loss={1.5 + 100 / step**0.5:.4f} acc=0.4\n" for step in range(1000, 142_001, 1000))
    table = "step,tau\n" + "".join(f"{step},{tau}\n" for step, tau in lengths.items())
    found = verdict_of_text(log, served_csv=table)
    assert found.status == "improving"
