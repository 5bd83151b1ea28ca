"""The two seams of the engine: what it needs of a target, and what it needs of a drafter.

Shape letters: B batch rows, N nodes, H hidden size, V vocabulary, P path.
"""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from outrider.engine.cache import Cache
from outrider.engine.costs import Costs
from outrider.engine.rules import Rules
from outrider.engine.tree import DraftTree, Proposal
from outrider.engine.walk import Walk


@dataclass(frozen=True, slots=True)
class TargetShape:
    """What the engine must know of a target to run it."""

    vocab_size: int
    hidden_size: int
    num_layers: int
    max_positions: int


@dataclass(frozen=True, slots=True)
class TargetOutput:
    """One forward pass over a draft tree.

    Attributes:
        hidden_BNH: after the final norm; what the head reads.
        taps: tap i is the output of block i, 0-based, [B, N, H] (before the final norm).
    """

    hidden_BNH: Tensor
    taps: dict[int, Tensor]


class Target(Protocol):
    """The model whose text is wanted."""

    @property
    def shape(self) -> TargetShape:
        """Sizes."""
        ...

    def new_cache(self, *, slots: int, max_len: int) -> Cache:
        """Room for ``slots`` sequences of ``max_len`` committed tokens."""
        ...

    def forward(
        self,
        tree: DraftTree,
        cache: Cache,
        rows: slice,
        lengths_B: Tensor,
        *,
        span: int | None,
        shortest: int = 0,
        taps: tuple[int, ...] = (),
    ) -> TargetOutput:
        """Run every node of the tree; commits nothing.

        Args:
            tree: what to run; row b belongs to slot ``rows.start + b``.
            cache: what is committed; the nodes' own keys and values, and tapes of recurrent layers, are left in it.
            rows: the slots of the batch, contiguous.
            lengths_B: committed tokens of each row, on the device.
            span: longest committed length of the rows, known on the host, + width: columns that attention reads. None
                where the host does not know it: then all that the cache has room for may be read.
            shortest: committed length that no row is below, known on the host: columns that no window of any row
                reaches are not read.
            taps: blocks whose output is wanted.
        """
        ...

    def logits(self, hidden: Tensor) -> Tensor:
        """Apply the head: [..., H] to [..., V], float32."""
        ...


@dataclass(frozen=True, slots=True)
class Slot:
    """One sequence's place in a round, as a drafter sees it.

    Attributes:
        slot: the cache slot; a drafter's own state is kept under it.
        anchor: last committed token, whose successors are to be proposed.
        max_depth: guesses that the text still has room for; may be 0.
        position: index in the sequence of the first token to guess.
        rules: the sampling rules of the sequence.
    """

    slot: int
    anchor: int
    max_depth: int
    position: int
    rules: Rules


@dataclass(frozen=True, slots=True)
class Committed:
    """What a pass made part of the sequences: chunks of a prompt, or the walked path of a round.

    Attributes:
        slots: the slot of each row, -1 for a row to pass over.
        tokens: per row what was newly decided, accepted drafts and bonus, in order (the last one is the next
            anchor); empty for a chunk of a prompt, which ``begin`` has shown whole.
        tree: what was run.
        walk: the path through it.
        out: hidden states and taps of every node.
    """

    slots: tuple[int, ...]
    tokens: tuple[tuple[int, ...], ...]
    tree: DraftTree
    walk: Walk
    out: TargetOutput


class Drafter(Protocol):
    """A drafting method: begin, propose, observe. It never verifies."""

    @property
    def name(self) -> str:
        """As in the table of drafters."""
        ...

    @property
    def max_nodes(self) -> int:
        """Most nodes of one proposal, root excluded."""
        ...

    @property
    def taps(self) -> tuple[int, ...]:
        """Blocks of the target whose output it reads."""
        ...

    @property
    def draws(self) -> bool:
        """Whether it hands over tokens drawn from a law of its own, where the request draws.

        Such texts follow the target's law as all others do, but are not those of plain decoding with the same seed.
        """
        ...

    def begin(self, slot: int, prompt: tuple[int, ...]) -> None:
        """A sequence starts in ``slot``; its prompt's passes are observed before the first proposal."""
        ...

    def share(self, source: int, slot: int, count: int) -> bool:
        """Take over for ``slot`` what was remembered of the first ``count`` tokens in ``source``, which may be itself.

        Called after ``begin``, in place of passes over those tokens, which then are not observed. The sequence in
        ``source`` may have ended; its slot was in no batch since. False where that is not possible.
        """
        ...

    def propose(self, slots: list[Slot | None], costs: Costs) -> list[Proposal]:
        """Guess successors of each anchor; an empty proposal for None, or where drafting would not pay."""
        ...

    def observe(self, committed: Committed) -> None:
        """Learn what became part of the sequences."""
        ...

    def end(self, slot: int) -> None:
        """The sequence in ``slot`` is over."""
        ...
