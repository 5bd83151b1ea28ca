"""The drafter that is trained where none is given: its layers, taps and mask token, from its target. Free of torch.

Its embeddings and head are the target's, so its width is; all else may differ.
"""

from dataclasses import dataclass

from outrider.errors import UsageError
from outrider.models.config import DecoderConfig, Rope
from outrider.models.dflash.config import DFlashConfig, LayerMask

# One letter a layer.
KINDS: dict[str, tuple[bool, bool]] = {"s": (True, True), "a": (True, False), "f": (False, False), "c": (False, True)}
MEANINGS = "s slides and is causal in the block, a slides and sees the block whole, f sees all, c sees all before it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a user may say of a drafter.

    Attributes:
        layers: one letter each: see ``MEANINGS``.
        window: of the layers that slide.
        block_size: slots of a block, the anchor's included.
        taps: target blocks that feed it; None takes as many as it has layers, from the second to the third last.
        mask_token: None takes one that no text has.
        heads, kv_heads, head_dim, intermediate_size: the target's where None.
        rope_theta: the target's where None.
        anchor_predicts: whether the anchor's slot predicts too.
    """

    layers: str = "sssss"
    window: int = 2048
    block_size: int = 16
    taps: tuple[int, ...] | None = None
    mask_token: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    intermediate_size: int | None = None
    rope_theta: float | None = None
    anchor_predicts: bool = False

    def masks(self) -> tuple[LayerMask, ...]:
        """Return who sees whom, a layer.

        Raises:
            UsageError: a letter that means nothing, or a window that hides the block's own slots.
        """
        wrong = sorted(set(self.layers) - set(KINDS))
        if wrong or not self.layers:
            raise UsageError(f"Layers {self.layers!r}: expected one letter each, of which {MEANINGS}.")
        if self.window < self.block_size:
            raise UsageError(
                f"A window of {self.window} does not hold a block of {self.block_size}: its last slots would not see "
                "the anchor; take a wider one."
            )
        return tuple(LayerMask(self.window if KINDS[one][0] else None, KINDS[one][1]) for one in self.layers)


def drafter_config(target: DecoderConfig, shape: Shape, mask_token: int) -> DFlashConfig:
    """Return the config of a drafter for a target.

    Raises:
        UsageError: a shape that contradicts itself or the target.
    """
    masks = shape.masks()
    taps = default_taps(target.num_layers, len(masks)) if shape.taps is None else shape.taps
    beyond = [tap for tap in taps if not 0 <= tap < target.num_layers - 1]
    if beyond or list(taps) != sorted(set(taps)):
        raise UsageError(
            f"Taps {', '.join(map(str, taps))}: expected rising numbers of target blocks from 0 to "
            f"{target.num_layers - 2}; the last block is left out, for engines disagree on what it gives."
        )
    if shape.block_size < 2:  # noqa: PLR2004 -- an anchor and a guess
        raise UsageError(f"Block size {shape.block_size}: expected at least 2, the anchor and a guess.")
    heads, kv_heads = shape.heads or target.num_heads, shape.kv_heads or target.num_kv_heads
    if heads % kv_heads:
        raise UsageError(f"{heads} query heads cannot share {kv_heads} key/value heads evenly; change either.")
    return DFlashConfig(
        vocab_size=target.vocab_size,
        hidden_size=target.hidden_size,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=shape.head_dim or target.head_dim,
        intermediate_size=shape.intermediate_size or target.intermediate_size,
        max_positions=target.max_positions,
        norm_eps=target.norm_eps,
        # Not what stretches the target's own: a drafter's positions are trained, and engines read its config alone.
        rope=Rope(shape.rope_theta or target.rope.theta),
        layers=masks,
        block_size=shape.block_size,
        anchor_predicts=shape.anchor_predicts,
        mask_token=mask_token,
        taps=tuple(taps),
        target_hidden_size=target.hidden_size,
        num_target_layers=target.num_layers,
    )


def default_taps(depth: int, count: int) -> tuple[int, ...]:
    """Return blocks evenly spread from the second to the third last, as published drafters have them."""
    first, last = min(1, depth - 2), max(depth - 3, 0)
    spread = max(last - first, 0)
    return tuple(sorted({round(first + spread * index / max(count - 1, 1)) for index in range(count)}))
