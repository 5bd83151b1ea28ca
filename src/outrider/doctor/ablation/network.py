"""A draft network with a fault in it.

Shape letters: N slots of all blocks, S columns, T tokens, R rows, H hidden.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from outrider.doctor.ablation.fault import Damage
from outrider.doctor.ablation.rounding import rounded
from outrider.engine.cache import Cache
from outrider.models.decoder import Decoder
from outrider.models.dflash.config import DFlashConfig, LayerMask
from outrider.models.dflash.network import DFlash
from outrider.models.layers import Pass, ReadTensor
from outrider.models.linear import Linear
from outrider.models.masks import Visible
from outrider.models.rope import Angles, frequencies


class FaultyDFlash(DFlash):
    """Runs blocks over recorded texts with a fault.

    Args:
        config: as it is read.
        read: of the tensors, damaged where the damage is theirs.
        target: what it drafts for.
        mask_embedding: as in ``DFlash``.
        damage: what is done in the pass.
    """

    def __init__(
        self, config: DFlashConfig, read: ReadTensor, target: Decoder, mask_embedding: Tensor | None, damage: Damage
    ) -> None:
        super().__init__(config, read, target, mask_embedding)
        self._damage, self._anchors, self._length = damage, [0], 0
        if damage.norm_missing:
            kept = _Keeping(self._fc)
            self._fc, self._context = kept, _Instead(self._context, kept)
        if damage.rotary_share < 1:
            self._angles = _Partial(config, damage.rotary_share, self.device)

    def remember(self, features_BNF: Tensor, cache: Cache, rows: slice, lengths_B: Tensor, *, span: int | None) -> None:
        """Make the context keys, and round them."""
        super().remember(features_BNF, cache, rows, lengths_B, span=span)
        if self._damage.cache_format is not None:
            assert span is not None  # noqa: S101 -- replays know their lengths
            new = slice(span - features_BNF.shape[1], span)
            for layer in range(self.config.num_layers):
                for held in cache.read(layer, rows, new):
                    held.copy_(rounded(held, self._damage.cache_format))

    def hidden_within(self, text_T: Tensor, cache: Cache, row: int, anchors: list[int]) -> Tensor:
        """Run the blocks, at shifted positions and without the context that is lost."""
        self._anchors, self._length = anchors, len(text_T)
        unshifted = self._angles
        self._angles = _Shifted(unshifted, self._damage.block_shift)
        try:
            return super().hidden_within(text_T, cache, row, anchors)
        finally:
            self._angles = unshifted

    def _run(self, hidden_BNH: Tensor, shared: Pass, visible: Callable[[LayerMask], Visible]) -> Tensor:
        lost_NT = self._lost()
        if lost_NT is None:
            return super()._run(hidden_BNH, shared, visible)

        def without(mask: LayerMask) -> Visible:
            seen = visible(mask)
            altered = seen.mask.clone()
            altered[0, 0, :, : self._length].masked_fill_(lost_NT, float("-inf"))
            return seen.masked(altered)

        return super()._run(hidden_BNH, shared, without)

    def _lost(self) -> Tensor | None:
        """Which context each slot is robbed of, [N, T]; None where nothing is lost."""
        damage = self._damage
        if not (damage.lost_before or damage.lost_newest) and damage.kept_newest is None:
            return None
        place_T = torch.arange(self._length, device=self.device)
        anchor_N1 = torch.tensor(self._anchors, device=self.device).repeat_interleave(self.config.block_size)[:, None]
        lost_NT = (place_T < damage.lost_before) | (place_T >= anchor_N1 - damage.lost_newest)
        if damage.kept_newest is not None:
            lost_NT |= place_T < anchor_N1 - damage.kept_newest
        return lost_NT


class _Shifted(Angles):
    """Angles of positions further on."""

    def __init__(self, inner: Angles, by: int) -> None:
        self._inner, self._by = inner, by

    def __call__(self, positions_BN: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        return self._inner(positions_BN + self._by, dtype)


class _Partial(Angles):
    """Turns the first pairs of a head only, at the frequencies of a head of their number."""

    def __init__(self, config: DFlashConfig, share: float, device: torch.device) -> None:
        fast, self._scale = frequencies(config.rope, int(config.head_dim * share))
        still = torch.zeros(config.head_dim // 2 - len(fast))
        self._frequency = torch.cat((fast, still)).to(device)


class _Keeping:
    """A linear layer that keeps what it gave last."""

    def __init__(self, inner: Linear) -> None:
        self._inner = inner
        self.last_RH = torch.empty(0)

    def __call__(self, rows: Tensor) -> Tensor:
        self.last_RH = self._inner(rows)
        return self.last_RH


class _Instead:
    """A linear layer that reads what another gave, before the norm between them."""

    def __init__(self, inner: Linear, kept: _Keeping) -> None:
        self._inner, self._kept = inner, kept

    def __call__(self, rows: Tensor) -> Tensor:
        return self._inner(self._kept.last_RH.view_as(rows))
