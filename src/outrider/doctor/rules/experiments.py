"""The next measurement: of the experiments that were not made, those that best part the suspects that are left.

An experiment shows something under the causes that it tests and nothing under the others, but for chance. What it is
worth is the information that its outcome is expected to give about the cause.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import log2

from pydantic import BaseModel, ConfigDict, TypeAdapter

from outrider.doctor.observation import Observation
from outrider.doctor.verdict import Cause

SHOWS, SILENT = 0.9, 0.08
"""Chance that an experiment shows something when the cause is one that it tests, and when it is not."""
MANY = 3
LEAST = 0.03
"""Bits; below that an experiment is not worth the restart."""
KNOWN: Mapping[str, Callable[[Observation], bool]] = {
    "greedy text compared": lambda o: o.evidence.output.differs_from_greedy is not None,
    "temperature 0": lambda o: o.evidence.traffic.temperature == 0,
    "tensors": lambda o: bool(o.evidence.drafter.tensors),
    "baseline": lambda o: o.reading.baseline is not None,
    "rounds": lambda o: o.evidence.counters.rounds is not None,
    "no error": lambda o: o.evidence.error is None,
}
"""Facts that show an experiment to be made already, or to be out of place."""


class Experiment(BaseModel):
    """A measurement.

    Attributes:
        says: What to do and what to look at.
        tests: Causes under which it shows something.
        names: It tells which of them it is, not only that it is one of them.
        dimensions, known: Any of them in the evidence, and it is made already.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    says: str
    tests: frozenset[Cause]
    names: bool = False
    dimensions: tuple[str, ...] = ()
    known: tuple[str, ...] = ()

    def made(self, o: Observation) -> bool:
        """The evidence holds its outcome."""
        return any(o.at(d) for d in self.dimensions) or any(KNOWN[name](o) for name in self.known)


@cache
def experiments() -> tuple[Experiment, ...]:
    """All of them."""
    text = files(__package__).joinpath("experiments.toml").read_text("utf-8")
    return TypeAdapter(tuple[Experiment, ...]).validate_python(tomllib.loads(text)["experiment"])


def next_measurements(o: Observation, chances: Mapping[Cause, float]) -> list[str]:
    """The most telling experiments that were not made, best first."""
    worth = sorted(
        ((information(e, chances), e.says) for e in experiments() if not e.made(o)), key=lambda pair: -pair[0]
    )
    return [says for bits, says in worth[:MANY] if bits >= LEAST]


def information(experiment: Experiment, chances: Mapping[Cause, float]) -> float:
    """Expected information of the outcome about the cause, in bits."""
    whole = sum(chances.values())
    if whole <= 0:
        return 0.0
    tested = [p / whole for cause, p in chances.items() if cause in experiment.tests]
    if experiment.names:
        silent = 1 - SHOWS * sum(tested)
        return _entropy([*(SHOWS * p for p in tested), silent]) - sum(tested) * _entropy([SHOWS, 1 - SHOWS])
    share = sum(tested)
    shows = share * SHOWS + (1 - share) * SILENT
    noise = share * _entropy([SHOWS, 1 - SHOWS]) + (1 - share) * _entropy([SILENT, 1 - SILENT])
    return _entropy([shows, 1 - shows]) - noise


def _entropy(chances: Sequence[float]) -> float:
    """Bits."""
    return -sum(p * log2(p) for p in chances if p > 0)
