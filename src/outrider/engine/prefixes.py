"""Which texts still lie in the cache, so that a prompt that begins as one of them need not be read again. No torch.

Knows tokens and slots. A text stays in its slot when its sequence has ended, until the slot is used by another.
"""

LEAST = 16  # tokens; fewer are read sooner than looked after


class Kept:
    """Texts of ended sequences, the one that ended first coming first."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[int, ...]] = {}

    def keep(self, slot: int, text: tuple[int, ...]) -> None:
        """A sequence ended in the slot and leaves its text there."""
        self.drop(slot)
        if len(text) >= LEAST:
            self._texts[slot] = text

    def drop(self, slot: int) -> None:
        """The slot is used by another."""
        self._texts.pop(slot, None)

    def of(self, slot: int) -> tuple[int, ...]:
        """Return what the slot keeps."""
        return self._texts.get(slot, ())

    def longest(self, prompt: tuple[int, ...]) -> tuple[int, int]:
        """Return the slot whose text shares most with a prompt, and how many tokens; the last of it is never shared."""
        shared = {slot: common(text, prompt) for slot, text in self._texts.items()}
        best = max(shared, key=lambda slot: shared[slot], default=-1)
        return (best, shared[best]) if best >= 0 and shared[best] >= LEAST else (-1, 0)

    def place_for(self, idle: list[int]) -> int | None:
        """Return the idle slot to which a text should move that must make room: an empty one, else the oldest's."""
        empty = [slot for slot in idle if slot not in self._texts]
        if empty:
            return max(empty)
        return next((slot for slot in self._texts if slot in idle), None)


def common(text: tuple[int, ...], prompt: tuple[int, ...]) -> int:
    """Return how many tokens a prompt shares with the beginning of a text; its last one, the anchor, is not counted."""
    most = min(len(text), len(prompt) - 1)
    if text[:most] == prompt[:most]:
        return most
    return next(index for index in range(most) if text[index] != prompt[index])
