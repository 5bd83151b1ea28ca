"""Which answers of a search are measured, and which only look best: each against its best rival, on many anchors.

An answer is measured when it beats the runner-up by an interval without 0 and by more than nothing. Otherwise the
default stays, unless it is itself clearly worse. Under a reading that knows no more than how frequent words are nothing
is measured: among wrong guesses some are always less wrong.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from outrider.acceptance import Interval
from outrider.models.dflash.config import DFlashConfig
from outrider.repair.readings import DECISIVE, Question
from outrider.repair.search import Search

SMALL = 0.002  # nats; what differs by less makes no difference to anybody
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found for one question.

    Attributes:
        question: what was asked.
        best: the reading that guesses best, in all points.
        rival: the best that answers this one otherwise; None where there is none, or where no answer means anything.
        difference: by how much the best one is worth more, in nats a slot (of block sizes: a block).
        measured: whether that decides it.
        keeps_default: not measured, and the default is not clearly worse than the best.
    """

    question: Question
    best: DFlashConfig
    rival: DFlashConfig | None
    difference: Interval | None
    measured: bool
    keeps_default: bool


def weigh(search: Search, config: DFlashConfig) -> list[Finding]:
    """Compare the reading found with the best rival for each question; a rival that clearly wins is gone on from."""
    if not _knows(search, config):
        return [Finding(asked, config, None, None, measured=False, keeps_default=True) for asked in search.questions]
    for _ in range(ROUNDS):
        better = next((rival for question in search.questions if (rival := _winner(search, question, config))), None)
        if better is None:
            break
        config = search.improve(better)
    return [_finding(search, question, config) for question in search.questions]


def _knows(search: Search, config: DFlashConfig) -> bool:
    """Whether any slot guesses better than frequencies do."""
    return bool((search.judge.score(config).gains_AK.mean(0) > 0).any())


def _winner(search: Search, question: Question, config: DFlashConfig) -> DFlashConfig | None:
    """The rival, if it clearly beats the reading."""
    search.tell(f"proof of {question.key}")
    rival = search.rival(question, config)
    if rival is None or not is_clear(_difference(search, question, rival, config)):
        return None
    return rival


def _finding(search: Search, question: Question, best: DFlashConfig) -> Finding:
    rival = search.rival(question, best)
    difference = None if rival is None else _difference(search, question, best, rival)
    measured = difference is not None and is_clear(difference)
    return Finding(question, best, rival, difference, measured, not measured and _default_holds(search, question, best))


def _default_holds(search: Search, question: Question, best: DFlashConfig) -> bool:
    default = with_default(question, best)
    return default is not None and (default == best or not is_clear(_difference(search, question, best, default)))


def _difference(search: Search, question: Question, one: DFlashConfig, other: DFlashConfig) -> Interval:
    return search.judge.difference(one, other, question.slots((one, other)))


def is_clear(difference: Interval) -> bool:
    """Whether the first of two readings is better beyond doubt, and by more than nothing."""
    return difference.low > 0 and difference.value > SMALL


def with_default(question: Question, config: DFlashConfig) -> DFlashConfig | None:
    """Answer one question by its default; None where that is no answer any more."""
    if question.value(config) == question.default:
        return config
    return next((other for other in question.others(config) if question.value(other) == question.default), None)


def decided(search: Search, findings: Iterable[Finding], best: DFlashConfig) -> DFlashConfig:
    """Return the best reading with the defaults where nothing was measured, unless they are clearly worse together."""
    config = best
    for finding in findings:
        if finding.keeps_default:
            config = with_default(finding.question, config) or config
    slots = min(DECISIVE, best.max_tokens, config.max_tokens)
    worse = _knows(search, best) and is_clear(search.judge.difference(best, config, slots))
    return best if worse else config
