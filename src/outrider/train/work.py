"""Which prompt is answered when, at which temperature, from which seed: one endless list for each seed.

The same seed and prompts give the same list, so a run that stopped goes on where it was. A prompt is answered
greedily at most once: the second greedy answer would be the first.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
import numpy.typing as npt

from outrider.engine.params import COLDEST
from outrider.errors import UnknownNameError, UsageError
from outrider.train.prompts import Prompt, Prompts

HOTTEST = 100.0
NEVER = np.iinfo(np.int64).max
_PASS, _SOURCE = 0, 1  # what a stream of random numbers is for


@dataclass(frozen=True, slots=True)
class Item:
    """One answer to be written.

    Attributes:
        index: number in the list.
        seed: of the answer's draws.
    """

    index: int
    prompt: Prompt
    temperature: float
    seed: int


@dataclass(frozen=True, slots=True)
class Mix:
    """Temperatures and the share of the answers that each has."""

    temperatures: tuple[float, ...]
    shares: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> "Mix":
        """Read ``0:0.4,0.7:0.3,1:0.3``; a share left out is 1, and shares are made to add up to 1.

        Raises:
            UsageError: another form, or a number out of range.
        """
        pairs = [_pair(part, text) for part in text.split(",")]
        temperatures, shares = zip(*pairs, strict=True)
        if len(set(temperatures)) != len(temperatures):
            raise UsageError(f"--temperature {text!r} names a temperature twice.")
        return cls(temperatures, tuple(share / sum(shares) for share in shares))

    @property
    def greedy(self) -> float:
        """Share of temperature 0."""
        return sum(share for t, share in zip(self.temperatures, self.shares, strict=True) if t == 0)

    def drawn(self) -> "Mix | None":
        """The mix without temperature 0; None where nothing is left."""
        kept = [(t, share) for t, share in zip(self.temperatures, self.shares, strict=True) if t > 0]
        if not kept:
            return None
        temperatures, shares = zip(*kept, strict=True)
        return Mix(temperatures, tuple(share / sum(shares) for share in shares))


def _pair(part: str, text: str) -> tuple[float, float]:
    temperature, _, share = part.partition(":")
    try:
        pair = float(temperature), float(share or 1)
    except ValueError:
        raise UsageError(
            f"--temperature {text!r}: expected TEMPERATURE:SHARE, separated by commas, as 0:0.4,0.7:0.3,1:0.3."
        ) from None
    if not (pair[0] == 0 or COLDEST <= pair[0] <= HOTTEST):
        raise UsageError(f"--temperature {text!r}: {pair[0]:g} is none; expected 0 (greedy) or {COLDEST:g} to 100.")
    if not 0 < pair[1] < math.inf:
        raise UsageError(f"--temperature {text!r}: the share {pair[1]:g} is not above 0.")
    return pair


class Plan:
    """The list of answers.

    Args:
        prompts: by kind.
        mix: of temperatures.
        seed: of the order, the temperatures and all draws.
        weights: by kind; a prompt of weight 2 is answered twice as often as one of weight 1, the default.
        once: end the list when each prompt (of weight 1) had its turn.

    Raises:
        UsageError: a weight of a kind that there is none of.
    """

    def __init__(
        self, prompts: Prompts, mix: Mix, *, seed: int, weights: Mapping[str, float] | None = None, once: bool
    ) -> None:
        for name in weights or {}:
            if name not in prompts.sources:
                raise UnknownNameError("source of prompts", name, prompts.sources)
        self._prompts, self._mix, self._seed, self._once = prompts, mix, seed, once
        self._weights = [(weights or {}).get(name, 1.0) for name in prompts.sources]
        self._orders = [self._order(source) for source in range(len(prompts.sources))]

    @property
    def num_items(self) -> int | None:
        """Length of the list; None where it does not end by itself."""
        return sum(len(self._uses(source, 0)) for source in range(len(self._orders))) if self._once else None

    def items(self, start: int = 0) -> Iterator[Item]:
        """Yield the answers from number ``start`` on."""
        return islice(self._all(), start, None)

    def _all(self) -> Iterator[Item]:
        index = 0
        for number in range(1) if self._once else count():
            uses = [self._uses(source, number) for source in range(len(self._orders))]
            chosen = self._pass(number, uses)
            for prompt, temperature, seed in chosen:
                yield Item(index, prompt, temperature, seed)
                index += 1
            if not chosen and all(use.start >= len(self._orders[source][0]) for source, use in enumerate(uses)):
                return  # every prompt had its greedy answer, and nothing is drawn

    def _order(self, source: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Order of a kind's prompts, and in which of its turns each is answered greedily."""
        rng = np.random.default_rng((self._seed, _SOURCE, source))
        size = len(self._prompts.by_source[source])
        greedy = self._mix.greedy
        turns = rng.geometric(greedy, size) - 1 if greedy > 0 else np.full(size, NEVER)
        return rng.permutation(size), turns

    def _uses(self, source: int, number: int) -> range:
        """Turns of a kind in a pass, counted from the first pass on."""
        a_pass = len(self._prompts.by_source[source]) * self._weights[source]
        return range(math.floor(a_pass * number), math.floor(a_pass * (number + 1)))

    def _pass(self, number: int, uses: Sequence[range]) -> list[tuple[Prompt, float, int]]:
        rng = np.random.default_rng((self._seed, _PASS, number))
        turns = [(source, use) for source, part in enumerate(uses) for use in part]
        drawn = self._mix.drawn()
        size = len(turns)
        order = rng.permutation(size)
        heats = rng.choice(drawn.temperatures, size, p=drawn.shares) if drawn else np.zeros(size)
        seeds = rng.integers(1 << 62, size=size)
        chosen = []
        for place in order:
            source, use = turns[place]
            prompts, greedy_turns = self._orders[source]
            turn, nth = divmod(use, len(prompts))
            prompt = int(prompts[nth])
            is_greedy = bool(turn == greedy_turns[prompt])
            if is_greedy or drawn is not None:
                heat = 0.0 if is_greedy else float(heats[place])
                chosen.append((self._prompts.by_source[source][prompt], heat, int(seeds[place])))
        return chosen


def parse_weights(texts: Sequence[str]) -> dict[str, float]:
    """Read ``NAME=WEIGHT``.

    Raises:
        UsageError: another form, or a weight not above 0.
    """
    weights = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            weights[name] = float(value)
        except ValueError:
            weights[name] = 0.0
        if not name or not 0 < weights[name] < math.inf:
            raise UsageError(f"--weight {text!r}: expected NAME=WEIGHT, a source of prompts and a number above 0.")
    return weights
