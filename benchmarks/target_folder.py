"""smollm2-135m as a Hugging Face folder, for engines that read no GGUF file: its tensors in float32, its tokenizer."""

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from outrider.checkpoint import open_checkpoint, resolve
from outrider.models.weights import read_tensor
from outrider.text.tokenizer import Tokenizer, load_tokenizer

NAME = "smollm2-135m"


def write(folder: Path) -> Path:
    """Write the target's folder; return it."""
    folder.mkdir(parents=True)
    checkpoint = open_checkpoint(resolve(NAME))
    tensors = {name: read_tensor(checkpoint, name).float().contiguous() for name in checkpoint.tensors}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = {"architectures": ["LlamaForCausalLM"], "dtype": "float32", **checkpoint.config}
    _write(folder / "config.json", config)
    write_words(folder, load_tokenizer(checkpoint))
    return folder


def write_words(folder: Path, tokenizer: Tokenizer) -> None:
    """Write a tokenizer and its chat template into a folder."""
    tokenizer.save(folder / "tokenizer.json")
    _write(folder / "tokenizer_config.json", _words(tokenizer))


def _words(tokenizer: Tokenizer) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokenizer.bos_token,
        "eos_token": tokenizer.eos_token,
        "pad_token": tokenizer.eos_token,
        "chat_template": tokenizer.chat_template,
    }


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
