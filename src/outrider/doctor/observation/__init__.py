"""Evidence brought to one definition: readings, contrasts between them, facts of the files, words. Judges nothing."""

from dataclasses import dataclass
from functools import cached_property

from outrider.doctor.evidence import Evidence
from outrider.doctor.observation.contrast import Contrast, contrasts
from outrider.doctor.observation.facts import Facts
from outrider.doctor.observation.reading import Reading, read
from outrider.doctor.observation.words import Words


@dataclass(frozen=True)
class Observation:
    """What the rules look at.

    Attributes:
        evidence: As it was given.
    """

    evidence: Evidence

    @cached_property
    def facts(self) -> Facts:
        """What files, settings and the command say."""
        return Facts(self.evidence)

    @cached_property
    def reading(self) -> Reading:
        """The main measurement."""
        return read(self.evidence.counters, self.facts.drafted)

    @cached_property
    def contrasts(self) -> tuple[Contrast, ...]:
        """The main measurement against each of the others, and the others in pairs."""
        return contrasts(self.evidence, self.reading, self.facts.drafted)

    @cached_property
    def words(self) -> Words:
        """Everything that was said."""
        return Words.of(self.evidence)

    @property
    def expected(self) -> float | None:
        """Acceptance length that the person expected."""
        return self.evidence.expected.mean_acceptance_length

    @property
    def share(self) -> float | None:
        """Observed acceptance length as a share of the expected one."""
        tau, expected = self.reading.tau, self.expected
        return tau / expected if tau is not None and expected else None

    @property
    def corrupt(self) -> bool:
        """The text is wrong, not only slow; sampling alone is no corruption."""
        return self.evidence.output.corrupt is True or self.evidence.output.differs_from_greedy is True

    def at(self, dimension: str) -> tuple[Contrast, ...]:
        """Contrasts in which this dimension differs."""
        return tuple(c for c in self.contrasts if dimension in c.dimensions)
