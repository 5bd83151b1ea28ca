"""Text that grows token by token, and strings that end it.

A token may hold half a character, and how a token reads may hang on its neighbours. What is handed
out here is final: nothing that comes later changes it. It knows no model and no engine.
"""

import re
from collections.abc import Iterable

from outrider.errors import UsageError
from outrider.text.tokenizer import Tokenizer

_REPLACEMENT = "\ufffd"
_BYTE_PIECE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
# An unfinished UTF-8 character is at most three bytes, so at most three tokens; one more gives the
# text before it, so that a leading space is not taken for the start of the whole text.
_CONTEXT = 4
_WINDOW = 4 * _CONTEXT


class Detokenizer:
    """Turns token ids into text as they come.

    The pushed texts and the flushed one, joined, are ``tokenizer.decode`` of all ids. Each token
    costs the decoding of a short window, however long the text has become.
    """

    def __init__(self, tokenizer: Tokenizer, *, skip_special: bool = True) -> None:
        self._tokenizer = tokenizer
        self._skip_special = skip_special
        self._window: list[int] = []
        self._num_shown = 0  # characters of the window's text that are handed out already

    def push(self, token_id: int) -> str:
        """Add one token; return the text that has become final."""
        piece = self._tokenizer.piece(token_id)
        if piece is None or (self._skip_special and self._tokenizer.is_special(token_id)):
            return ""  # decoding leaves it out, so its neighbours are neighbours of each other
        self._window.append(token_id)
        if _BYTE_PIECE.fullmatch(piece):
            return ""  # a run of byte tokens reads as a whole or not at all: wait for its end
        text = self._take(self._final_text())
        if len(self._window) > _WINDOW:
            self._window = self._window[-_CONTEXT:]
            self._num_shown = len(self._final_text())
        return text

    def flush(self) -> str:
        """Return what was held back; the text ends here."""
        text = self._take(self._text())
        self._window = []
        self._num_shown = 0
        return text

    def _take(self, text: str) -> str:
        new = text[self._num_shown :]
        self._num_shown = max(self._num_shown, len(text))
        return new

    def _final_text(self) -> str:
        # Only the last character can be one that its next bytes repair.
        return self._text().removesuffix(_REPLACEMENT)

    def _text(self) -> str:
        return self._tokenizer.decode(self._window, skip_special=self._skip_special)


class StopStrings:
    """Finds the first stop string in a text that comes in parts.

    First is the one that is complete first, so the answer never waits for text beyond it; of those
    complete at the same character, the longest. How the text is cut into parts changes nothing.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(stops)
        if "" in self._stops:
            raise UsageError("A stop string is empty; it would end every text at once. Remove it.")
        self._longest = max(map(len, self._stops), default=0)
        self._held = ""
        self._matched: str | None = None

    def push(self, text: str) -> tuple[str, str | None]:
        """Add text; return what may be shown and the stop string that was found, if any.

        After a find nothing more is shown, and each call names the same stop string.
        """
        if self._matched is not None:
            return "", self._matched
        text = self._held + text
        found = self._first_in(text)
        if found is not None:
            start, self._matched = found
            self._held = ""
            return text[:start], self._matched
        num_safe = len(text) - self._num_open(text)
        self._held = text[num_safe:]
        return text[:num_safe], None

    def flush(self) -> str:
        """Return what was held back as a possible start of a stop string; the text ends here."""
        text, self._held = self._held, ""
        return text

    def _first_in(self, text: str) -> tuple[int, str] | None:
        found = [(start, stop) for stop in self._stops if (start := text.find(stop)) >= 0]
        return min(found, key=lambda at: (at[0] + len(at[1]), at[0]), default=None)

    def _num_open(self, text: str) -> int:
        """Return the length of the longest end of ``text`` that starts some stop string."""
        lengths = range(min(self._longest - 1, len(text)), 0, -1)
        return next((n for n in lengths if self._starts_stop(text[-n:])), 0)

    def _starts_stop(self, end: str) -> bool:
        return any(len(end) < len(stop) and stop.startswith(end) for stop in self._stops)
