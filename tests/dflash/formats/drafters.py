"""Opens drafters of the tests and says what was found."""

from pathlib import Path
from typing import Any

import pytest
import torch
from dflash.drafter_files import DEFAULTS, weights_of
from dflash.reference import Tensors, draft_logits
from torch import Tensor

from outrider.checkpoint import Source, open_checkpoint, resolve
from outrider.errors import CheckpointError
from outrider.models.decoder import Decoder
from outrider.models.dflash.config import DFlashConfig
from outrider.models.dflash.formats import Examined, examine, read_drafter
from outrider.models.dflash.loading import load_dflash
from outrider.models.dflash.network import DFlash
from outrider.models.loading import load_decoder
from outrider.models.weights import read_tensor

DSPARK: dict[str, Any] = {
    "markov_rank": 6,
    "markov_head_type": "vanilla",
    "enable_confidence_head": True,
    "confidence_head_with_markov": True,
}
DFLASH2: dict[str, Any] = {
    "conv_kernel_size": 2,
    "conv_group_size": 4,
    "selector_rank": 6,
    "selector_top_k": 5,
    "is_causal": False,
}


def source_of(path: Path) -> Source:
    return resolve(str(path))


def found_in(path: Path) -> Examined:
    return examine(source_of(path))


def config_of(path: Path) -> DFlashConfig:
    """The config of a drafter with which nothing is wrong."""
    found = found_in(path)
    assert found.problems == ()
    assert found.config is not None
    return found.config


def problem_keys(path: Path) -> list[str]:
    return [problem.key for problem in found_in(path).problems]


def refusal(path: Path, *allow: str) -> str:
    """The one line with which a drafter is refused."""
    with pytest.raises(CheckpointError) as caught:
        read_drafter(source_of(path), allow=allow)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path} is not run as a drafter. ")
    return message


def weights(target_hidden: int = 32, **config: Any) -> Tensors:
    """What ``write_drafter`` writes for the same keys."""
    return weights_of(DEFAULTS | config, target_hidden)


class Target:
    """A tiny target in float64, its table and its head."""

    def __init__(self, folder: Path) -> None:
        checkpoint = open_checkpoint(source_of(folder))
        self.decoder: Decoder = load_decoder(checkpoint, dtype=torch.float64, device=torch.device("cpu"))
        self.embed = read_tensor(checkpoint, "model.embed_tokens.weight").double()
        self.head = read_tensor(checkpoint, "lm_head.weight").double()

    def load(self, path: Path, *allow: str) -> DFlash:
        return load_dflash(read_drafter(source_of(path), allow=allow), self.decoder)

    def expected(self, config: DFlashConfig, tensors: Tensors, features_TF: Tensor, anchor: int = 7) -> Tensor:
        """Logits by the dense reference."""
        double = {name: value.double() for name, value in tensors.items()}
        return draft_logits(config, double, self.embed, self.head, features_TF, anchor)


def features_of(config: DFlashConfig, length: int = 20) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    width = len(config.taps) * config.target_hidden_size
    return torch.randn(length, width, generator=generator, dtype=torch.float64)


def logits_of(network: DFlash, features_TF: Tensor, anchor: int = 7) -> Tensor:
    """Logits of the block after the context, as an engine would ask for them."""
    length, size = len(features_TF), network.config.block_size
    cache = network.new_cache(slots=1, max_len=length + size)
    rows = slice(0, 1)
    network.remember(features_TF[None], cache, rows, torch.tensor([0]), span=length)
    draft = network.draft(torch.tensor([anchor]), cache, rows, torch.tensor([length]), span=length + size)
    return draft.logits_BKV[0]
