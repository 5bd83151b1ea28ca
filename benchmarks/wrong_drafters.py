"""The shipped drafter with one thing wrong in its files, for each thing that people get wrong."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from outrider.checkpoint.shipped import shipped_folder
from outrider.doctor.verdict import Cause

NAME = "smollm2-135m-dflash"
WORD = 4000  # any word of the vocabulary
Config = dict[str, Any]


def _taps(change: Callable[[list[int]], list[int]]) -> Callable[[Config], None]:
    def wrong(config: Config) -> None:
        config["dflash_config"]["target_layer_ids"] = change(config["dflash_config"]["target_layer_ids"])

    return wrong


def _mask(config: Config) -> None:
    config["dflash_config"]["mask_token_id"] = WORD


def _no_window(config: Config) -> None:
    config["layer_types"] = ["full_attention"] * config["num_hidden_layers"]
    config["use_sliding_window"] = False
    del config["sliding_window"]


def _nothing(_config: Config) -> None:
    return


WRONG: Mapping[str, tuple[Cause | None, Callable[[Config], None]]] = {
    "right": (None, _nothing),
    "taps: others": ("wrong_layer_ids", _taps(lambda ids: [ids[0] + 3, *(i - 3 for i in ids[1:])])),
    "taps: one late": ("layer_id_offset", _taps(lambda ids: [i + 1 for i in ids])),
    "taps: reversed": ("wrong_layer_ids", _taps(lambda ids: ids[::-1])),
    "mask token: a word": ("mask_token", _mask),
    "windows removed": ("swa_ignored", _no_window),
    "untrained": ("undertrained_drafter", _nothing),
}
"""What is wrong, its cause, and how the config is changed."""


def write(what: str, folder: Path) -> Path:
    """Write the drafter with this wrong; return its folder."""
    shutil.copytree(shipped_folder(NAME), folder, ignore=shutil.ignore_patterns("*.jsonl", "*.md"))
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    WRONG[what][1](config)
    path.write_text(json.dumps(config, indent=1), encoding="utf-8")
    if what == "untrained":
        _untrain(folder / "model.safetensors")
    return folder


def _untrain(path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    tensors = {
        name: (torch.randn(value.shape, generator=generator) * 0.02).to(value.dtype) if value.ndim > 1 else value
        for name, value in load_file(path).items()
    }
    save_file(tensors, path, metadata={"format": "pt"})
