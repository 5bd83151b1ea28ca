"""One request on its way through the engine. Free of torch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from outrider.acceptance import Round
from outrider.engine.params import SamplingParams

FinishReason = Literal["stop", "length", "cancelled"]
Watch = Callable[[int], bool]


def _never(_token: int) -> bool:
    return False


@dataclass(slots=True)
class Sequence:
    """A prompt, what has been added to it, and how it went.

    Attributes:
        id: the engine's number for it.
        prompt: token ids; at least one.
        params: sampling settings.
        stop_ids: tokens that end it.
        watch: is shown each new token and says whether the text ends with it (stop strings).
        draft_depth: deepest guess that may be drafted for it; 0 none at all, None as deep as the drafter likes.
        slot: its place in the cache, -1 while it waits.
        output: tokens added.
        reused: tokens of the prompt that did not have to be read.
        committed: tokens whose keys and values are in the cache.
        rounds: one entry a round.
        begun_at, read_at: seconds of ``time.perf_counter``: got its slot, prompt read but for the anchor.
        round_ends: likewise, when each round's tokens came.
    """

    id: int
    prompt: tuple[int, ...]
    params: SamplingParams
    stop_ids: frozenset[int] = frozenset()
    watch: Watch = _never
    draft_depth: int | None = None
    slot: int = -1
    output: list[int] = field(default_factory=list)
    reused: int = 0
    committed: int = 0
    rounds: list[Round] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    begun_at: float = 0.0
    read_at: float = 0.0
    round_ends: list[float] = field(default_factory=list)

    @property
    def anchor(self) -> int:
        """The last token; its successors are decided next."""
        return self.output[-1] if self.output else self.prompt[-1]

    @property
    def in_cache(self) -> tuple[int, ...]:
        """The tokens that are committed."""
        return (*self.prompt, *self.output)[: self.committed]

    @property
    def length(self) -> int:
        """Tokens so far."""
        return len(self.prompt) + len(self.output)

    @property
    def prefilled(self) -> bool:
        """Whether all but the anchor is in the cache."""
        return self.committed == self.length - 1

    @property
    def room(self) -> int:
        """New tokens that may still come."""
        return self.params.max_tokens - len(self.output)

    @property
    def guesses(self) -> int:
        """How deep its next draft may be: the text's room, and what was asked for."""
        room = self.room - 1
        return room if self.draft_depth is None else min(room, self.draft_depth)

    @property
    def cancelled(self) -> bool:
        """Whether somebody took it out, perhaps in the middle of a round."""
        return self.finish_reason == "cancelled"

    def take(self, token: int) -> bool:
        """Add a token; return whether the sequence ends with it."""
        self.output.append(token)
        matched = self.watch(token)  # asked for every token: who watches keeps the text
        if self.cancelled:
            return True
        if token in self.stop_ids or matched:
            self.finish_reason = "stop"
        elif self.room == 0:
            self.finish_reason = "length"
        return self.finish_reason is not None
