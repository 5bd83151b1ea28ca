"""What a guess costs: cross-entropy weighed by slot, by expected accepted length, or against the target's own law.

A batch's loss is the sum of weighted costs over the sum of weights, both over all its slots, wherever they were
computed; so losses and gradients are summed first and divided last.
Shape letters: P blocks, K slots that predict, V words of the drafter.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from outrider.train.options import TrainOptions

FOREIGN = -2  # label of a word that the drafter's own head lacks: asked for, and never right


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over slots, on the device, in one tensor [2 + 2K]: costs, weights, slots that were right, slots asked."""

    values: Tensor

    @classmethod
    def nothing(cls, guesses: int, device: torch.device) -> "Sums":
        """Return sums over no slot."""
        return cls(torch.zeros(2 + 2 * guesses, dtype=torch.float64, device=device))

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.values + other.values)

    @property
    def weight(self) -> Tensor:
        """Sum of weights; of no slot a small number, so that dividing is safe."""
        return self.values[1].clamp(min=1e-9)

    @property
    def loss(self) -> float:
        """The loss; waits for the device."""
        return float(self.values[0] / self.weight)

    @property
    def accuracy(self) -> list[float]:
        """Share of each slot's labels that were its likeliest word; waits for the device."""
        right_K, asked_K = self.values[2:].chunk(2)
        shares: list[float] = (right_K / asked_K.clamp(min=1)).tolist()
        return shares


@dataclass(frozen=True, slots=True)
class Costs:
    """How guesses are weighed.

    Attributes:
        gamma: of the decay.
        pace: floor of D-PACE's probabilities; None for the decay alone.
        distillation: share of the target's law in the cost.
    """

    gamma: float
    pace: float | None = None
    distillation: float = 0.0

    @classmethod
    def of(cls, options: TrainOptions, block_size: int) -> "Costs":
        """Return those of a run."""
        pace = options.pace if options.loss == "d-pace" else None
        return cls(options.gamma_of(block_size), pace, options.distillation)

    def weigh(self, logits_PKV: Tensor, labels_PK: Tensor, law_PKV: Tensor | None) -> tuple[Tensor, Sums]:
        """Return the sum of weighted costs, and what is counted of it.

        Args:
            logits_PKV: float32.
            labels_PK: in the drafter's own words; negative for none or a foreign one.
            law_PKV: the target's, where it has a share.
        """
        known_PK = labels_PK >= 0
        surprise_PK = functional.cross_entropy(
            logits_PKV.flatten(0, 1), labels_PK.clamp(min=0).flatten(), reduction="none"
        ).view(labels_PK.shape)
        cost_PK = surprise_PK
        if law_PKV is not None:
            cost_PK = cost_PK.lerp(-(law_PKV * logits_PKV.log_softmax(-1)).sum(-1), self.distillation)
        with torch.no_grad():
            weight_PK = self._weights(torch.exp(-surprise_PK) * known_PK, labels_PK != -1) * known_PK
            right_PK = logits_PKV.argmax(-1) == labels_PK
        loss = (cost_PK * weight_PK).sum()
        counts = [loss.detach()[None], weight_PK.sum()[None], right_PK.sum(0), (labels_PK != -1).sum(0)]
        return loss, Sums(torch.cat([count.double() for count in counts]))

    def _weights(self, probability_PK: Tensor, asked_PK: Tensor) -> Tensor:
        if self.pace is None:
            slots_K = torch.arange(probability_PK.shape[1], device=probability_PK.device)
            return torch.exp(-slots_K / self.gamma).expand_as(probability_PK)
        return pace_weights(probability_PK, asked_PK, self.pace)


def pace_weights(probability_PK: Tensor, asked_PK: Tensor, floor: float) -> Tensor:
    """Return w_j = sum over m >= j of the product over i <= m of (1 - floor) q_i + floor (D-PACE, arXiv 2605.18810).

    Without the floor it is the derivative of the expected accepted length by log q_j. Slots that nothing was asked of
    end the block.
    """
    reach_PK = (((1 - floor) * probability_PK + floor) * asked_PK).cumprod(1)
    return reach_PK.flip(1).cumsum(1).flip(1)
