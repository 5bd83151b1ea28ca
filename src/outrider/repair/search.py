"""Finds the reading under which a drafter guesses best: one question after the other, until no answer changes.

Usual combinations of taps, masks and mask token are tried first, together; the best is improved point by point. Many
answers get a first look at few anchors, the best of them a second at more.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from outrider.models.dflash.config import DFlashConfig, LayerMask
from outrider.repair.judge import Judge
from outrider.repair.readings import DECISIVE, Question
from outrider.repair.start import tap_lists

SWEEPS = 4
BEGINNINGS = 2  # tried in turn while nothing works
WORKS = 1.5  # acceptance length from which on no other beginning is tried
KEPT = 4  # answers that get a second look, at least
SHARE = 6  # a first look passes on one in so many
USUAL_SIZES = (8, 16)
WORTHWHILE, MUCH = 0.01, 0.3  # nats a slot: a sweep that gains less is the last

Told = Callable[[str], None]


@dataclass(slots=True)
class Search:
    """The state of a search.

    Attributes:
        judge: scores readings.
        questions: what is open.
        told: is told what is being tried.
        ranked: for each key the answers that got a second look the last time, best first.
    """

    judge: Judge
    questions: Sequence[Question]
    told: Told
    ranked: dict[str, list[Any]] = field(default_factory=dict)

    def run(self, beginnings: Sequence[DFlashConfig]) -> DFlashConfig:
        """Return the best reading found."""
        self.tell(f"{len(beginnings)} beginnings")
        found: list[tuple[DFlashConfig, dict[str, list[Any]]]] = []
        for config in self._best(beginnings, BEGINNINGS, slots=DECISIVE):
            self.ranked = {}
            found.append((self.improve(config), self.ranked))
            if self.judge.score(found[-1][0], 1).length >= WORKS:
                break
        best, self.ranked = max(found, key=lambda one: self.judge.worth(one[0], DECISIVE, 1))
        return best

    def improve(self, config: DFlashConfig) -> DFlashConfig:
        """Ask all questions until the answers hardly change; the second time only what looked good the first time."""
        for sweep in range(SWEEPS):
            before = config
            for question in self.questions:
                self.tell(f"{question.key}, sweep {sweep + 1}")
                config = self._ask(question, config)
            slots = min(DECISIVE, before.max_tokens, config.max_tokens)
            worth = self.judge.worth(config, slots, 1)
            gained = worth - self.judge.worth(before, slots, 1)
            enough = MUCH if worth < 0 else WORTHWHILE  # what guesses worse than frequencies must improve fast
            if config.block_size == before.block_size and gained < enough:
                break
        return config

    def _ask(self, question: Question, config: DFlashConfig) -> DFlashConfig:
        others = question.others(config)
        if not others:
            return config
        if question.key in self.ranked:
            others = [other for other in others if question.value(other) in self.ranked[question.key]]
        slots = question.slots((config, *others))
        best = self._best(others, max(KEPT, len(others) // SHARE), slots=slots)
        both = sorted((config, *best), key=lambda one: -self.judge.worth(one, slots, 1))
        self.ranked[question.key] = [question.value(one) for one in both]
        return both[0]

    def rival(self, question: Question, config: DFlashConfig) -> DFlashConfig | None:
        """Return the reading with the best answer to one question that is not the one at hand; None without any."""
        own = question.value(config)
        best = next((value for value in self.ranked.get(question.key, []) if value != own), None)
        return next((other for other in question.others(config) if question.value(other) == best), None)

    def tell(self, line: str) -> None:
        """Say what is tried now, and what it took so far."""
        self.told(f"{line} ({self.judge.num_readings} readings, {self.judge.num_blocks} blocks so far)")

    def _best(self, readings: Iterable[DFlashConfig], count: int, *, slots: int | None) -> list[DFlashConfig]:
        """The best few, best first, by a first look at all of them and a second at these."""
        some = list(readings)
        for level in (0, 1):
            if len(some) > count or level:
                some = sorted(some, key=lambda config: -self.judge.worth(config, slots, level))[:count]
        return some


def beginnings(
    start: DFlashConfig, blocks: int, *, mask_tokens: Sequence[int], windows: Sequence[int]
) -> list[DFlashConfig]:
    """Return the readings to begin with: taps, masks, mask token and block size in combinations of the usual.

    Args:
        start: the first of them.
        blocks: of the target.
        mask_tokens: the likeliest ones.
        windows: sizes that the texts can tell from none.
    """
    taps = dict.fromkeys((start.taps, *tap_lists(blocks, len(start.taps))))
    tokens = dict.fromkeys((start.mask_token, *mask_tokens)) if start.mask_token is not None else {None: None}
    plain = dict.fromkeys((start.layers, *_patterns(start.num_layers, None)))
    windowed = [pattern for window in windows for pattern in _patterns(start.num_layers, window)]
    sizes = dict.fromkeys((start.block_size, *USUAL_SIZES))
    return [
        replace(start, taps=some, mask_token=token, layers=layers, block_size=size)
        for some, token, layers, size in (*product(taps, tokens, plain, sizes), *product(taps, tokens, windowed, sizes))
    ]


def _patterns(count: int, window: int | None) -> list[tuple[LayerMask, ...]]:
    """All layers bidirectional, all causal, all but the last causal; with a window where there is one."""
    around, causal = LayerMask(window, causal=False), LayerMask(window, causal=True)
    last = LayerMask(None, causal=False)
    return [(around,) * count, (causal,) * count, (*(causal,) * (count - 1), last), (*(around,) * (count - 1), last)]
