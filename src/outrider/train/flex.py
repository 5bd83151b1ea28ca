"""Flex attention: a kernel that is made for a rule of who sees whom, and leaves out what nobody sees.

On a GPU it is compiled, and so is the making of masks; elsewhere both are PyTorch's plain ones.
Shape letters: B rows, G heads, Q queries, S keys, D head size.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

Rule = Callable[[Any, Any, Any, Any], Tensor]


def block_mask(rule: Rule, rows: int, queries: int, keys: int, device: torch.device) -> "BlockMask":
    """Return what (row, head, query, key) -> whether it is seen means for blocks of queries and keys."""
    from torch.nn.attention.flex_attention import create_block_mask

    make = _compiled(create_block_mask) if device.type == "cuda" else create_block_mask
    mask: BlockMask = make(rule, B=rows, H=None, Q_LEN=queries, KV_LEN=keys, device=device)
    return mask


def flex(query_BGQD: Tensor, key_BGSD: Tensor, value_BGSD: Tensor, visible: "BlockMask") -> Tensor:
    """Mix what each query sees, [B, G, Q, D]; keys may have fewer heads. For use inside of what is compiled."""
    from torch.nn.attention.flex_attention import flex_attention

    mixed = flex_attention(
        query_BGQD, key_BGSD, value_BGSD, block_mask=visible, enable_gqa=query_BGQD.shape[1] != key_BGSD.shape[1]
    )
    assert isinstance(mixed, Tensor)  # noqa: S101 -- nothing else was asked for
    return mixed


def flex_alone(query_BGQD: Tensor, key_BGSD: Tensor, value_BGSD: Tensor, visible: "BlockMask") -> Tensor:
    """Mix as ``flex`` does, where nothing around it is compiled."""
    run = _compiled(flex) if query_BGQD.is_cuda else flex
    mixed: Tensor = run(query_BGQD, key_BGSD, value_BGSD, visible)
    return mixed


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function, dynamic=False)
