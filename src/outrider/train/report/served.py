"""Is what was trained what is served? By the run's own experiments where it logs them, else by its curves.

Curves compare accuracy of the network in training with rounds in an engine: c_k, the share of rounds that reach slot k
and pass it, against the accuracy of slot k. In a working pair rounds are not shorter than a product of accuracies, for
right words come together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from outrider.train.parting import APART, parting
from outrider.train.report.checks import Check, State, listed
from outrider.train.report.curve import before, stretch
from outrider.train.report.run import Evaluation, Run, Slots

TITLES = {
    "F1": "labels shifted by a place",
    "F2": "a context that reaches to the anchor",
    "F3": "blocks that are causal in training and not when served, or the reverse",
    "F8": "another mask token in training than when served",
}
PARTED = "training and serving part"
EXPECTED = 1.3  # acceptance length that training must promise before there is something to compare
DEAD = 0.25  # of the promised tokens: served about 1
ALIVE = 0.6  # of slot 1's accuracy
LOST = 0.4  # of the accuracy of later slots
LESS = 0.9  # of all slots' accuracy
EVEN = 0.2  # between the ratios of slots that lose alike; F3 measured 0.86 to 0.88 of tau (vllm#43445)
COPIED = 0.9  # accuracy of slot 1 that no text of a large vocabulary allows; published drafters have .85 to .88
STEEP = 0.2  # fall from slot 1 to the others that copying it leaves
NOISE = 0.05  # accuracy below which ratios are noise
COMPARED = 4  # slots


def served_checks(run: Run) -> list[Check]:
    """Return what is known of F1, F2, F3 and F8."""
    probed = [line for line in run.evaluations if line.probes and line.slots]
    if probed:
        return _by_probes(probed[-1])
    if run.decoded:
        return _by_curves(run, run.decoded[-1])
    text = "No evaluation tells an acceptance length from an engine; give a table of step and tau beside the log."
    return _each("not examined", text)


def _each(state: State, text: str, others: Mapping[str, tuple[State, str]] | None = None) -> list[Check]:
    """Return a check for each fault, the same but for some."""
    return [Check(code, title, *(others or {}).get(code, (state, text))) for code, title in TITLES.items()]


def _by_probes(line: Evaluation) -> list[Check]:
    taught, served = line.probes["as_trained"]["loss"], line.probes["served"]["loss"]
    text = f"Held-out loss {taught:.2f} as taught, {served:.2f} as served."
    found: dict[str, tuple[State, str]] = {
        # Rounds that are shorter than text promises have harmless reasons, too; lessons that differ have none.
        finding.code: (
            "found" if served > (1 + APART) * taught else "suspected",
            f"At the last evaluation {finding.text}.",
        )
        for finding in parting(line.probes, line.slots, line.rates)
    }
    unnamed = [Check(code, PARTED, *said) for code, said in found.items() if code not in TITLES]
    return [*_each("clear", text, found), *unnamed]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One evaluation against what training promised.

    Attributes:
        slots: accuracy of the network in training; none where it is logged as one number.
        passed: c_k of the rounds.
        promised: acceptance length at least, by those accuracies.
        tau: of the rounds.
    """

    slots: Slots
    passed: Slots
    promised: float
    tau: float

    @property
    def share(self) -> float:
        """How many of the promised tokens were accepted."""
        return (self.tau - 1) / max(self.promised - 1, 1e-9)

    @property
    def ratios(self) -> Slots:
        """c_k against accuracy, of the first slots, as far as accuracy is something."""
        pairs = zip(self.passed[:COMPARED], self.slots, strict=False)
        return tuple(passed / right for passed, right in pairs if right > NOISE)


def _compare(run: Run, line: Evaluation) -> _Comparison | None:
    trained = stretch(before(run, run.seen(line)))
    slots = line.slots or trained.slots
    accuracy = line.accuracy if line.accuracy is not None else trained.accuracy
    length = line.length if line.length is not None else trained.length
    if slots:
        promised = 1 + sum(prod(slots[: k + 1]) for k in range(len(slots)))
    elif length is not None:
        promised = length
    elif accuracy is not None:
        promised = 1 / (1 - min(accuracy, 0.95))
    else:
        return None
    reached = (1.0, *line.rates)
    passed = tuple(rate / previous for previous, rate in zip(reached, line.rates, strict=False) if previous > 0)
    return _Comparison(slots, passed, promised, line.tau or 1.0)


def _by_curves(run: Run, line: Evaluation) -> list[Check]:
    compared = _compare(run, line)
    if compared is None:
        return _each("not examined", "No accuracy of training stands beside the evaluations.")
    said = f"Training promises an acceptance length of {compared.promised:.2f} at least; served: {compared.tau:.2f}."
    if compared.promised < EXPECTED:
        return _each("not examined", f"{said} Too early to compare.")
    if compared.share < DEAD and not _first_alive(compared):
        return [_first_slot_lost(compared, said)]
    if compared.ratios:
        return _by_slots(compared, said)
    return _each("clear" if compared.share >= LESS else "not examined", f"{said} Position rates are not logged.")


def _first_alive(compared: _Comparison) -> bool:
    return bool(compared.ratios) and compared.ratios[0] >= ALIVE


def _first_slot_lost(compared: _Comparison, said: str) -> Check:
    """Served about 1: several faults leave that trace, and the slots of training tell some of them apart."""
    slots = compared.slots
    if not slots:
        code, why = "F1/F2", "labels shifted by a place (F1), or a context that reaches to the anchor (F2)"
    elif slots[0] >= COPIED and slots[0] - max(slots[1:], default=1.0) >= STEEP:
        code, why = "F2", f"slot 1 is right in {slots[0]:.0%}, as if it saw its anchor's features (F2)"
    else:
        code = "F1/F8"
        why = (
            f"accuracy falls off as it should ({listed(slots)}), so likely labels shifted by a place (F1), or another "
            "mask token (F8)"
        )
    engine = "If another engine measured it, its reading of the config can be at fault instead (outrider inspect)."
    return Check(code, PARTED, "found", f"{said} They part at slot 1: {why}. {engine}")


def _by_slots(compared: _Comparison, said: str) -> list[Check]:
    first, later = compared.ratios[0], compared.ratios[1:]
    text = f"{said} Rounds pass slots {listed(compared.passed)}; training is right in {listed(compared.slots)}."
    if first >= ALIVE and later and sum(later) / len(later) <= LOST:
        return _each("clear", text, {"F8": ("found", f"{text} Slot 1 lives and later ones do not.")})
    if max(compared.ratios) <= LESS and max(compared.ratios) - min(compared.ratios) <= EVEN:
        lost = f"{text} All slots lose alike: F3, or prompts of another kind than the training's."
        return _each("clear", text, {"F3": ("suspected", lost)})
    return _each("clear", text)
