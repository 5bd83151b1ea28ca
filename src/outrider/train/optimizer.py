"""How weights move: learning rate, optimizers, and the mean over steps that is served."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from outrider.train.network import DraftNetwork
from outrider.train.options import TrainOptions

BETAS = (0.9, 0.95)  # a shorter memory than AdamW's usual 0.999: runs are a few thousand steps


def learning_rate(options: TrainOptions, step: int, steps: int) -> float:
    """Return the rate of a step, counted from 0: up in a line, then down a cosine to nothing."""
    rising = max(1, round(options.warm_up * steps))
    if step < rising:
        return options.lr * (step + 1) / rising
    return options.lr * 0.5 * (1 + math.cos(math.pi * (step + 1 - rising) / max(1, steps - rising + 1)))


class Optimizers:
    """AdamW, or Muon for the matrices and AdamW for the rest.

    Args:
        network: its parameters are moved.
        options: settings of the run.
    """

    def __init__(self, network: nn.Module, options: TrainOptions) -> None:
        self.parameters = [one for one in network.parameters() if one.requires_grad]
        matrices = [one for one in self.parameters if one.dim() == 2]  # noqa: PLR2004 -- rows and columns
        vectors = [one for one in self.parameters if one.dim() != 2]  # noqa: PLR2004
        self._clip = options.clip
        decayed = {"params": matrices, "weight_decay": options.weight_decay}
        plain = {"params": vectors, "weight_decay": 0.0}
        self._all: list[torch.optim.Optimizer] = []
        if options.optimizer == "muon":
            self._all.append(torch.optim.Muon([decayed], options.lr, adjust_lr_fn="match_rms_adamw"))
            self._all.append(torch.optim.AdamW([plain], options.lr, betas=BETAS, fused=True))
        else:
            self._all.append(torch.optim.AdamW([decayed, plain], options.lr, betas=BETAS, fused=True))

    def step(self, rate: float, scale: Tensor) -> Tensor:
        """Move the weights by gradients that were summed, and return the gradients' length before it was cut.

        Args:
            rate: learning rate.
            scale: what the sums are multiplied by.
        """
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad.mul_(scale)
        length = nn.utils.clip_grad_norm_(self.parameters, self._clip)
        for optimizer in self._all:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return length

    def state(self) -> list[dict[str, Any]]:
        """Return what a resumed run needs."""
        return [optimizer.state_dict() for optimizer in self._all]

    def restore(self, states: list[dict[str, Any]]) -> None:
        """Take it back."""
        for optimizer, state in zip(self._all, states, strict=True):
            optimizer.load_state_dict(state)


class Average:
    """The mean of the weights over steps, old ones fading. It is what is measured and exported.

    Args:
        network: whose weights.
        decay: what is left of the mean after a step; early on it is less, so that the first weights fade soon.
    """

    def __init__(self, network: DraftNetwork, decay: float) -> None:
        self._network, self._decay = network, decay
        self._means = [parameter.detach().clone() for parameter in network.parameters()]

    def update(self, step: int) -> None:
        """Take in the weights after a step, counted from 1."""
        decay = min(self._decay, (1 + step) / (10 + step))
        values = [parameter.detach() for parameter in self._network.parameters()]
        get_ema_multi_avg_fn(decay)(  # type: ignore[no-untyped-call]
            self._means, values, 0
        )

    def tensors(self) -> dict[str, Tensor]:
        """Return every tensor of the drafter, the trained ones as means."""
        names = [name for name, _ in self._network.named_parameters()]
        return self._network.weights() | dict(zip(names, self._means, strict=True))

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take means back."""
        for (name, _), mean in zip(self._network.named_parameters(), self._means, strict=True):
            mean.copy_(tensors[name])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the network compute with the means for a while."""
        kept = [parameter.detach().clone() for parameter in self._network.parameters()]
        self._fill(self._means)
        try:
            yield
        finally:
            self._fill(kept)

    @torch.no_grad()
    def _fill(self, values: list[Tensor]) -> None:
        for parameter, value in zip(self._network.parameters(), values, strict=True):
            parameter.copy_(value)
