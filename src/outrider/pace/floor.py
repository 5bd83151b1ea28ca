"""The fewest bytes that a round must move, and the time that takes: what nothing can be faster than. Free of torch.

Every weight that takes part is read once, the keys and values of the context once, states of recurrent layers are
read, and read and written again by the commit. What nodes write and read among themselves is not counted.
"""

from math import prod
from typing import NamedTuple

from outrider.models.config import DecoderConfig
from outrider.models.dflash.config import DFlashConfig
from outrider.pace.methods import Method
from outrider.pace.shapes import Shapes

HALF, FLOAT, NARROW = 2, 4, 1 + 4 / 128**2  # bytes of a number; float8 with one float32 scale a block


class Moved(NamedTuple):
    """Bytes of a round.

    Attributes:
        weights: of the target's layers and its head.
        drafting: weights that drafting reads, the head each time it scores guesses.
        context: keys and values of committed tokens, the drafter's among them.
        states: of recurrent layers.
    """

    weights: float
    drafting: float
    context: float
    states: float

    @property
    def total(self) -> float:
        """All of them."""
        return sum(self)


def moved(shapes: Shapes, method: Method, *, context: int, batch: int, narrow: bool, number: int = HALF) -> Moved:
    """Count the bytes of a round.

    Args:
        shapes: target and drafter.
        method: how it drafts.
        context: committed tokens of each row.
        batch: rows.
        narrow: float8 weights (the head and small matrices stay wide).
        number: bytes of a wide number.
    """
    target = shapes.target
    head = target.vocab_size * target.hidden_size * number
    layers = sum(
        _size(shape, narrow=narrow, number=number)
        for name, shape in target.tensor_shapes().items()
        if not name.startswith(("model.embed_tokens", "lm_head"))
    )
    drafting, kept = _drafting(shapes, method, context, head, narrow=narrow, number=number)
    keys = batch * (context * target.kv_elements_per_token + kept) * number
    return Moved(layers + head, drafting, keys, 3 * batch * _state(target))


def _drafting(
    shapes: Shapes, method: Method, context: int, head: float, *, narrow: bool, number: int
) -> tuple[float, int]:
    """Bytes of weights, and numbers of keys and values a row."""
    target, drafter = shapes.target, shapes.drafter
    if method.name == "mtp":
        one = sum(_size(shape, narrow=narrow, number=number) for shape in target.mtp_tensor_shapes().values())
        # The first guess was scored when the last positions were taken in; each other one runs the layer again.
        return method.size * (one + head), method.size * context * 2 * target.num_kv_heads * target.head_dim
    if method.name in {"dflash", "ddtree"} and drafter is not None:
        sizes = [_size(shape, narrow=narrow, number=number) for shape in drafter.tensor_shapes().values()]
        return sum(sizes) + head, _draft_context(drafter, context)
    return 0.0, 0


def _draft_context(drafter: DFlashConfig, context: int) -> int:
    seen = sum(min(context, mask.window or context) for mask in drafter.layers)
    return seen * 2 * drafter.num_kv_heads * drafter.head_dim


def _size(shape: tuple[int, ...], *, narrow: bool, number: int) -> float:
    small = len(shape) != 2 or shape[0] % 128 != 0  # noqa: PLR2004 -- vectors, and matrices that fill no block of scales
    return prod(shape) * (number if small or not narrow else NARROW)


def _state(target: DecoderConfig) -> int:
    if target.delta is None:
        return 0
    heads, keys, values = target.delta.value_heads, target.delta.key_size, target.delta.value_size
    return len(target.delta_layers) * heads * keys * values * FLOAT
