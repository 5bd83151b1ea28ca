"""Words drawn at temperature 1, against the law that the server states: a chi-square test, its chance simulated.

The first word of an answer comes from the prompt's own pass; only the second is decided in a round of speculation. It
is looked at where the first is the likeliest one.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from math import exp

import numpy as np

from outrider.doctor.lossless.result import Law
from outrider.doctor.lossless.server import Answer

SAMPLES = 200
TOKENS = 8  # of a drawn answer: with fewer, engines do not draft
SIMULATED = 20_000
FEWEST = 50  # words to draw a conclusion from
Ask = Callable[[str, float, Sequence[int]], Sequence[Answer]]


def laws(prompt: str, ask: Ask) -> list[Law]:
    """Test the first two words after a prompt.

    Args:
        prompt: a short one.
        ask: prompt, temperature and seeds to answers.
    """
    first = ask(prompt, 0.0, [0])[0]
    if not first.tops:
        return []
    drawn = [answer.tokens for answer in ask(prompt, 1.0, range(1, SAMPLES + 1)) if answer.tokens]
    after = [tokens[1] for tokens in drawn if len(tokens) > 1 and tokens[0] == first.tokens[0]]
    found = [_test(prompt, 1, [tokens[0] for tokens in drawn], first.tops[0])]
    if len(first.tops) > 1:
        found.append(_test(prompt, 2, after, first.tops[1]))
    return [law for law in found if law is not None]


def _test(prompt: str, position: int, words: Sequence[str], stated: dict[str, float]) -> Law | None:
    """Return the test, with what is not among the stated words as one more; None where there is too little."""
    if len(words) < FEWEST:
        return None
    counted = Counter(words)
    names = list(stated)
    chances = np.array([exp(stated[name]) for name in names])
    chances = np.append(chances, max(0.0, 1 - chances.sum()))
    chances = (chances + 1e-9) / (chances + 1e-9).sum()  # a word that rounding makes impossible is not
    hits = [counted[name] for name in names]
    observed = np.array([*hits, len(words) - sum(hits)])
    expected = chances * len(words)
    value = float(((observed - expected) ** 2 / expected).sum())
    drawn = np.random.default_rng(0).multinomial(len(words), chances, size=SIMULATED)
    worse = int((((drawn - expected) ** 2 / expected).sum(1) >= value).sum())
    return Law(
        prompt=prompt, position=position, samples=len(words), chi_square=value, chance=(worse + 1) / (SIMULATED + 1)
    )
