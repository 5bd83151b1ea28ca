"""Products of few rows with large weights, as fast as the weights can be read.

A pass over n <= 64 nodes reads every weight once and does little with it. The library's products leave bandwidth
unused at such sizes; here tiles of outputs are spread over the whole device, and long inputs are cut in pieces whose
sums the last program of a tile adds up. The gated form makes silu(gate) * up of stacked gates and ups at once.
Weights are float16, bfloat16, float32, or float8 with one scale a block of 128 by 128 (as in published FP8
checkpoints). The Triton version is in ``skinny_kernel``; the plain one below is what it must equal.
Shape letters: T tokens, I inputs, O outputs.
"""

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from outrider.kernels.launch import early, exact, power, processors, room, tile
from outrider.kernels.plans import Size, measured

MOST = 64  # tokens; above, the library's products are as fast
AHEAD, LINE = 1024, 128  # bytes of each output's weights that are fetched ahead, and of a line of the cache
SCALE_BLOCK = 128  # outputs and inputs that share a scale


class Plan(NamedTuple):
    """How one product is cut.

    Attributes:
        outputs, inputs: of a tile.
        pieces: that the inputs are cut in.
        warps: of a program.
        stages: tiles on their way at once.
    """

    outputs: int
    inputs: int
    pieces: int
    warps: int = 4
    stages: int = 4


def plan(outputs: int, inputs: int, tokens: int, device: torch.device, *, narrow: bool = False) -> Plan:
    """Cut a product so that at least two programs a multiprocessor read weights.

    Args:
        outputs: O; of the gated form, of the result.
        inputs: I.
        tokens: T.
        device: where it runs.
        narrow: whether weights take one byte.
    """
    wide = 64 if tokens <= 32 else 128  # noqa: PLR2004 -- more tokens are read again by every tile of outputs
    deep = SCALE_BLOCK if narrow or tokens > 16 else 256  # noqa: PLR2004 -- as the smallest tile of tokens
    tiles = -(-outputs // wide)
    pieces = max(1, min(8, -(-2 * processors(device) // tiles), inputs // (4 * deep)))
    return Plan(wide, deep, pieces, stages=3 if deep > SCALE_BLOCK or wide > SCALE_BLOCK // 2 else 4)


def skinny_plainly(
    rows: Tensor, weight: Tensor, bias: Tensor | None = None, scale: Tensor | None = None, *, gated: bool = False
) -> Tensor:
    """The same by PyTorch, with sums in float32."""
    full = dequantised(weight, scale).to(rows.dtype) if scale is not None else weight
    result = functional.linear(rows, full, bias)
    if gated:
        gate, up = result.chunk(2, -1)
        return functional.silu(gate) * up
    return result


def dequantised(weight: Tensor, scale: Tensor) -> Tensor:
    """Weights [O, I] of float8 and scales [ceil(O / 128), ceil(I / 128)], as float32."""
    spread = scale.repeat_interleave(SCALE_BLOCK, 0)[: len(weight)]
    return weight.float() * spread.repeat_interleave(SCALE_BLOCK, 1)[:, : weight.shape[1]]


def quantised(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Round weights [O, I] to float8, as ``dequantised`` takes them: a block's largest becomes the type's largest."""
    outputs, inputs = weight.shape
    across = -(-inputs // SCALE_BLOCK)
    padded = functional.pad(weight, (0, across * SCALE_BLOCK - inputs, 0, -outputs % SCALE_BLOCK))
    blocks = padded.view(-1, SCALE_BLOCK, across, SCALE_BLOCK)
    largest = torch.finfo(torch.float8_e4m3fn).max
    scale = (blocks.abs().amax((1, 3)).float() / largest).clamp(min=torch.finfo(torch.float32).tiny)
    narrow = (blocks.float() / scale[:, None, :, None]).to(torch.float8_e4m3fn).view_as(padded)
    return narrow[:outputs, :inputs].contiguous(), scale


def skinny(
    rows: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    scale: Tensor | None = None,
    *,
    gated: bool = False,
    into: Tensor | None = None,
    cut: Plan | None = None,
) -> Tensor:
    """Map [T, I] to [T, O] by the kernel.

    Args:
        rows: contiguous.
        weight: [O, I], contiguous; of the gated form [2 O, I], gates before ups.
        bias: [O] or None; not of the gated form.
        scale: [ceil(O / 128), ceil(I / 128)] float32 of float8 weights, or None; gates a multiple of 128.
        gated: return silu(gate) * up.
        into: where the result goes, [T, O], its rows perhaps apart; None makes room.
        cut: how; None lets ``plan`` say.
    """
    tokens, inputs = rows.shape
    outputs = len(weight) // 2 if gated else len(weight)
    cut = cut or _cut(Size(outputs, inputs, min(MOST, tile(tokens)), gated, scale is not None), rows.device)
    width = cut.outputs // 2 if gated else cut.outputs  # two tiles are on their way then
    token_tile = min(MOST, tile(tokens))
    tiles = -(-outputs // width), -(-tokens // token_tile)
    piece = inputs if gated else -(-inputs // (cut.pieces * cut.inputs)) * cut.inputs
    pieces = -(-inputs // piece)
    result = torch.empty(tokens, outputs, dtype=rows.dtype, device=rows.device) if into is None else into
    spare = room(rows.device)
    _kernel()[(*tiles, pieces)](
        weight,
        weight if scale is None else scale,
        rows,
        rows if bias is None else bias,
        result,
        spare.sums(pieces * tokens * outputs if pieces > 1 else 0),
        spare.counters(tiles[0] * tiles[1]),
        outputs,
        tokens,
        inputs,
        piece,
        result.stride(0),
        0 if scale is None else scale.shape[1],
        BO=width,
        BT=token_tile,
        BK=cut.inputs,
        PIECES=pieces,
        GATED=gated,
        BIASED=bias is not None,
        SCALED=scale is not None,
        EVEN=outputs % width == 0 and piece % cut.inputs == 0 and inputs % cut.inputs == 0,
        AHEAD=max(1, power(min(AHEAD, piece * weight.itemsize) // LINE + 1) // 2),  # a power of two that is not more
        LINE=LINE // weight.itemsize,
        EXACT=exact(rows.dtype),
        **early(rows.device),
        num_warps=cut.warps,
        num_stages=cut.stages,
    )
    return result


def _cut(size: Size, device: torch.device) -> Plan:
    """As it was measured, or as it is thought to be best."""
    found = measured.get(size)
    if found is not None:
        return Plan(*found)
    return plan(size.outputs, size.inputs, size.tokens, device, narrow=size.narrow)


@cache
def _kernel() -> Any:
    """Build the kernel when it is first wanted: Triton is on GPU machines alone."""
    from outrider.kernels.skinny_kernel import skinny_kernel

    return skinny_kernel
