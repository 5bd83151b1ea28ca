"""Where the search starts: what the tensors determine, and for the rest what was given or is usual. Free of torch."""

from dataclasses import replace
from itertools import pairwise

from outrider.models.config import DecoderConfig
from outrider.models.dflash.config import DFlashConfig, LayerMask, Selector
from outrider.repair.infer import Inferred

BLOCK_SIZE = 16  # of most published drafters
WINDOW = 2048  # likewise, where they have windows
TOP_K = 16  # of the published DFlash2 drafters
NORM_EPS = 1e-6


def starting_config(
    inferred: Inferred, target: DecoderConfig, *, given: DFlashConfig | None, mask_embedding: bool
) -> DFlashConfig:
    """Put together a config that fits the tensors.

    Args:
        inferred: what the tensors say; it goes before what was given.
        target: what it drafts for.
        given: what an existing config says.
        mask_embedding: whether the drafter brings a vector of its own for masked slots.
    """
    sizes = {
        name: getattr(inferred, name)
        for name in DFlashConfig.__dataclass_fields__
        if name in Inferred.__dataclass_fields__
    }
    usual = given or _usual(inferred, target)
    fitting = replace(usual, **sizes, mask_embedding=mask_embedding, selector=_selector(inferred, usual))
    if len(fitting.layers) != inferred.num_layers:
        fitting = replace(fitting, layers=_full(inferred.num_layers))
    if not _are_taps(fitting.taps, inferred.num_taps, target.num_layers):
        fitting = replace(fitting, taps=tap_lists(target.num_layers, inferred.num_taps)[0])
    return replace(fitting, mask_token=_mask_token(fitting), num_target_layers=target.num_layers)


def _usual(inferred: Inferred, target: DecoderConfig) -> DFlashConfig:
    """What most drafters have, and the target's rotary embedding."""
    return DFlashConfig(
        vocab_size=inferred.vocab_size,
        hidden_size=inferred.hidden_size,
        num_heads=inferred.num_heads,
        num_kv_heads=inferred.num_kv_heads,
        head_dim=inferred.head_dim,
        intermediate_size=inferred.intermediate_size,
        max_positions=target.max_positions,
        norm_eps=NORM_EPS,
        rope=target.rope,
        layers=_full(inferred.num_layers),
        block_size=BLOCK_SIZE,
        anchor_predicts=inferred.kind == "dspark",
        mask_token=0,
        taps=(),
        target_hidden_size=inferred.target_hidden_size,
    )


def _full(count: int) -> tuple[LayerMask, ...]:
    return (LayerMask(None, causal=False),) * count


def _selector(inferred: Inferred, usual: DFlashConfig) -> Selector | None:
    if inferred.selector_rank is None:
        return None
    return Selector(inferred.selector_rank, usual.selector.top_k if usual.selector else TOP_K)


def _mask_token(config: DFlashConfig) -> int | None:
    if config.mask_embedding:
        return None
    token = config.mask_token
    return token if token is not None and 0 <= token < config.vocab_size else 0


def _are_taps(taps: tuple[int, ...], count: int, blocks: int) -> bool:
    return len(set(taps)) == len(taps) == count and all(0 <= tap < blocks for tap in taps)


def tap_lists(blocks: int, count: int) -> list[tuple[int, ...]]:
    """Return lists of taps to start from: the published formula, then others that are spread evenly.

    The formula is that of z-lab's builder with the number of taps in place of draft layers, from the second block to
    the third last; the rest are spread over all blocks, over the inner ones, and over the later half.
    """
    ranges = (
        (1, blocks - 3),
        (0, blocks - 1),
        (blocks // (count + 1), blocks - 1 - blocks // (count + 1)),
        (blocks // 2, blocks - 2),
        (max(1, blocks // 12), blocks - 3),
    )
    lists = [_spread(low, high, count) for low, high in ranges]
    usable = dict.fromkeys(taps for taps in lists if _are_taps(taps, count, blocks))
    return list(usable) or [tuple(range(count))]


def _spread(low: int, high: int, count: int) -> tuple[int, ...]:
    if count == 1:
        return ((low + high + 1) // 2,)
    return tuple(round(low + index * (high - low) / (count - 1)) for index in range(count))


def is_increasing(taps: tuple[int, ...]) -> bool:
    """Whether each tap lies behind the one before."""
    return all(one < other for one, other in pairwise(taps))
