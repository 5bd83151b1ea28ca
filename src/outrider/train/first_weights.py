"""First values of a drafter's weights, and how they are fitted to what they will read and write.

Shape letters: R tokens, F features (taps * target width), V words, H hidden.
"""

import torch
from torch import Tensor

from outrider.models.dflash.config import DFlashConfig

INTO_THE_STREAM = ("o_proj.weight", "down_proj.weight")
NORMAL = 1.4826  # standard deviation of a normal law, in median absolute values


def fresh_weights(config: DFlashConfig, seed: int) -> dict[str, Tensor]:
    """Return first values: norms 1, biases and sinks 0, matrices that keep the size of what flows through them.

    What is added to the residual stream is smaller, the more layers add to it.
    """
    generator = torch.Generator().manual_seed(seed)
    made = {}
    for name, shape in config.tensor_shapes().items():
        if len(shape) == 1:
            made[name] = torch.ones(shape) if name.endswith("norm.weight") else torch.zeros(shape)
            continue
        size = shape[-1] ** -0.5
        if name.endswith(INTO_THE_STREAM):
            size *= (2 * config.num_layers) ** -0.5
        made[name] = torch.randn(shape, generator=generator) * size
    return made


def fit_to_features(weights: dict[str, Tensor], features_RF: Tensor) -> None:
    """Let every feature count alike at first.

    A target's residual stream has a few features a hundred times as large as the rest, which would be all that the
    drafter sees. Medians, because those that make a text's first token stand out are larger still.
    """
    spread_F = NORMAL * features_RF.float().abs().median(0).values
    weights["fc.weight"] /= spread_F.clamp(min=1e-3 * float(spread_F.max())).to(weights["fc.weight"])


def fit_to_head(weights: dict[str, Tensor], head_VH: Tensor) -> None:
    """Let first guesses be nearly even: logits of a spread of 1, where the head would make it larger."""
    spread = float(head_VH.float().square().sum(1).mean().sqrt())
    weights["norm.weight"] /= max(1.0, spread)
