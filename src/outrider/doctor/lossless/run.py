"""The check: the same prompts cold, again, after one with the same beginning, eight at once; then laws."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from secrets import token_hex

from outrider.doctor.lossless.compare import Asked, compare, near_tie
from outrider.doctor.lossless.judge import CONTROL, Seen, judge, notes
from outrider.doctor.lossless.law import TOKENS, laws
from outrider.doctor.lossless.prompts import RECORDS, SHORT, Pair, pairs
from outrider.doctor.lossless.result import Lossless
from outrider.doctor.lossless.server import SECONDS, Answer, RefusedError, Server

AT_ONCE = 8
MAX_TOKENS = 64
Told = Callable[[str], None]


def check(
    url: str, *, reference: str | None = None, seconds: float = SECONDS, told: Told = lambda _line: None
) -> Lossless:
    """Compare a server's text at temperature 0 with a reference's, or with its own under other conditions.

    Args:
        url: an OpenAI-compatible server.
        reference: one that runs the same target without speculation.
        seconds: time limit of each request.
        told: is told what is being done.

    Raises:
        UsageError: a server cannot be reached, hangs, or answers something else.
    """
    server = Server(url, seconds=seconds)
    other = None if reference is None else Server(reference, seconds=seconds)
    told("how long prompts may be")
    records = min(_fitting(one) for one in (server, other) if one is not None)
    asked = _texts(server, other, pairs(token_hex(4), records), told)
    near = near_tie((one for some in asked.values() for one in some), asked.get(CONTROL, ()))
    compared = [compare(name, some, near) for name, some in asked.items()]
    conditions = [condition for condition, _ in compared]
    places = sorted((place for _, some in compared for place in some), key=lambda place: place.tie)
    told("words are drawn at temperature 1")
    drawn = [law for prompt in SHORT for law in laws(prompt, _asker(server))]
    worded = all(one.found.tops for some in asked.values() for one in some)
    short = records < RECORDS[0]
    return _result(Seen(conditions, places, drawn, alone=other is None, worded=worded, short=short), near)


def _fitting(server: Server) -> int:
    """Return how long a beginning the server takes, tried with one that is not used again."""
    for records in RECORDS[:-1]:
        try:
            server.ask(pairs(token_hex(4), records)[0].second, max_tokens=MAX_TOKENS)
        except RefusedError:
            continue
        return records
    return RECORDS[-1]


@dataclass
class _Texts:
    """Answers so far; the first to a prompt is what is expected of it from then on."""

    expected: dict[str, Answer]
    numbers: dict[str, int]
    asked: dict[str, list[Asked]] = field(default_factory=dict)

    def take(self, condition: str, prompt: str, answer: Answer) -> None:
        """Take an answer to a prompt."""
        expected = self.expected.setdefault(prompt, answer)
        if expected is not answer:
            self.asked.setdefault(condition, []).append(Asked(self.numbers[prompt], expected, answer))


def _texts(server: Server, other: Server | None, some: Sequence[Pair], told: Told) -> dict[str, list[Asked]]:
    every = [prompt for pair in some for prompt in (pair.first, pair.second)]
    texts = _Texts({}, {prompt: number for number, prompt in enumerate(every, start=1)})
    if other is not None:
        told("the reference writes, twice")
        for prompt in (*every, *every):
            texts.take(CONTROL, prompt, _ask(other, prompt))
    told("one at a time")
    firsts = [pair.first for pair in some]
    for prompt in firsts:
        texts.take("cold", prompt, _ask(server, prompt))
    for prompt in firsts:
        texts.take("again", prompt, _ask(server, prompt))
    for prompt in every[::-1]:  # second, first: the first comes after one that begins alike
        texts.take("after one that begins alike", prompt, _ask(server, prompt))
    told(f"{AT_ONCE} at once")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for prompt, answer in zip(every, pool.map(lambda prompt: _ask(server, prompt), every), strict=True):
            texts.take(f"{AT_ONCE} at once", prompt, answer)
    return texts.asked


def _ask(server: Server, prompt: str) -> Answer:
    return server.ask(prompt, max_tokens=MAX_TOKENS)


def _asker(server: Server) -> Callable[[str, float, Sequence[int]], list[Answer]]:
    def ask(prompt: str, temperature: float, seeds: Sequence[int]) -> list[Answer]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            draw = pool.map(
                lambda seed: server.ask(prompt, max_tokens=TOKENS, temperature=temperature, seed=seed), seeds
            )
            return list(draw)

    return ask


def _result(seen: Seen, near: float) -> Lossless:
    outcome, summary = judge(seen)
    return Lossless(
        outcome=outcome,
        summary=summary,
        against="itself" if seen.alone else "reference",
        conditions=list(seen.conditions),
        places=list(seen.places),
        near_tie=near,
        laws=list(seen.laws),
        notes=notes(seen),
    )
