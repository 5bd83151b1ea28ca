"""Where the end of a text occurred before: earlier places whose recent past equals the present one."""

from collections import defaultdict, deque
from dataclasses import dataclass

MAX_PLACES = 48  # latest occurrences looked at: frequent words have hundreds, and old ones rarely win
MAX_MATCH = 24  # tokens of agreement that are counted: longer ones are all but certain anyway


@dataclass(frozen=True, slots=True)
class Match:
    """An earlier place that looks like the present.

    Attributes:
        place: index of the token that followed there.
        length: how many tokens before it equal the end of the text.
    """

    place: int
    length: int

    @property
    def weight(self) -> int:
        """What the place counts for when places disagree: three times as much for each token more in common."""
        return int(3 ** min(self.length, 10))


class SuffixIndex:
    """A text that grows, and the places of each of its tokens."""

    def __init__(self, tokens: tuple[int, ...]) -> None:
        self.tokens: list[int] = []
        self._after: defaultdict[int, deque[int]] = defaultdict(lambda: deque(maxlen=MAX_PLACES))
        for token in tokens:
            self.append(token)

    def append(self, token: int) -> None:
        """Add a token; the one before it now has a successor."""
        if self.tokens:
            self._after[self.tokens[-1]].append(len(self.tokens))
        self.tokens.append(token)

    def matches(self) -> list[Match]:
        """Earlier places that the end of the text resembles, longest match first, then latest."""
        found = [Match(place, self._agreement(place)) for place in self._after.get(self.tokens[-1], ())]
        found.sort(key=lambda match: (-match.length, -match.place))
        return found

    def _agreement(self, place: int) -> int:
        """Count equal tokens going back from ``place`` and from the end; the first pair is known to be equal."""
        tokens, end = self.tokens, len(self.tokens)
        limit = min(MAX_MATCH, place)
        length = 1
        while length < limit and tokens[place - 1 - length] == tokens[end - 1 - length]:
            length += 1
        return length
