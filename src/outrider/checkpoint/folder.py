"""A folder in Hugging Face layout: config.json and safetensors, whole or in shards.

Every disagreement between index and shards is found from the headers. Knows no tensor's meaning.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outrider.checkpoint.checkpoint import Checkpoint, TensorInfo
from outrider.checkpoint.fp8 import join_scales
from outrider.checkpoint.safetensors_file import read_header
from outrider.checkpoint.source import Source
from outrider.errors import CheckpointError, UnsupportedError

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
NEEDED = ("model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


def open_folder(source: Source, *, weights: bool = True, needed: Sequence[str] = NEEDED) -> Checkpoint:
    """Read the headers of the model in ``source.path``; without weights only its config.

    Args:
        source: the folder.
        weights: whether they are looked at.
        needed: keys without which the config is no model's; a drafter's have other names and places.

    Raises:
        CheckpointError: a file is missing, damaged or contradicts another.
        UnsupportedError: the weights are in a format other than safetensors.
    """
    folder = source.path
    config = read_json(folder / "config.json")
    _check_config(config, folder / "config.json", needed)
    generation = folder / "generation_config.json"
    return Checkpoint(
        source=source,
        config=config,
        tensors=join_scales(read_headers(folder), config) if weights else {},
        generation_config=read_json(generation) if generation.is_file() else {},
    )


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file.

    Raises:
        CheckpointError: missing, not JSON, or not an object.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not valid JSON ({error}). Fetch the file again.") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: expected a JSON object, found a {type(value).__name__}.")
    return value


def _check_config(config: dict[str, Any], path: Path, needed: Sequence[str]) -> None:
    inner = config.get("text_config")
    sizes = inner if isinstance(inner, dict) else config
    missing = [key for key in needed if key not in (config if key == "model_type" else sizes)]
    if missing:
        raise CheckpointError(f"{path} lacks {', '.join(missing)}. Expected the config.json of a language model.")


def read_headers(folder: Path) -> dict[str, TensorInfo]:
    """Return the tensors of a folder, whole or in shards.

    Raises:
        CheckpointError: there are none, or they are damaged or contradict each other.
        UnsupportedError: they are in a format other than safetensors.
    """
    # The index comes first: a folder that holds both was saved as shards last.
    if (folder / INDEX).is_file():
        return _sharded(folder)
    singles = [folder / SINGLE] if (folder / SINGLE).is_file() else sorted(folder.glob("*.safetensors"))
    if len(singles) == 1:  # drafters come under names of their own
        return read_header(singles[0])
    if singles:
        raise CheckpointError(
            f"{folder} holds {len(singles)} safetensors files and no {INDEX} to say which belong together: expected "
            f"it, {SINGLE}, or one file alone. Fetch the model again."
        )
    others = sorted([*folder.glob("*.bin"), *folder.glob("*.pth"), *folder.glob("*.pt")])
    if others:
        raise UnsupportedError(
            f"{folder} holds its weights as {others[0].name}, which can run code when opened and "
            "is not read. Convert it to safetensors."
        )
    raise CheckpointError(f"{folder} has no weights: expected {SINGLE} or {INDEX}.")


def _sharded(folder: Path) -> dict[str, TensorInfo]:
    shards = _shards(folder)
    missing = [name for name in shards if not (folder / name).is_file()]
    if missing:
        raise CheckpointError(
            f"{len(missing)} of {len(shards)} shards that {INDEX} names are missing from {folder}: "
            f"{missing[0]}{' and others' if missing[1:] else ''}. Fetch the model again."
        )
    tensors: dict[str, TensorInfo] = {}
    for shard, names in shards.items():
        found = read_header(folder / shard)
        absent = [name for name in names if name not in found]
        if absent:
            raise CheckpointError(
                f"{folder / shard} lacks {len(absent)} tensors that {INDEX} places there, first "
                f"{absent[0]}. Index and shards are of different versions; fetch the model again."
            )
        tensors |= {name: found[name] for name in names}
    return tensors


def _shards(folder: Path) -> dict[str, list[str]]:
    """Return the names of the tensors in each shard, as the index says."""
    weight_map = read_json(folder / INDEX).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{folder / INDEX} has no weight_map. Fetch the model again.")
    shards: dict[str, list[str]] = {}
    for name, shard in weight_map.items():
        if not isinstance(shard, str) or Path(shard).name != shard:
            raise CheckpointError(f"{folder / INDEX} places {name} in {shard!r}; expected a file name in that folder.")
        shards.setdefault(shard, []).append(name)
    return shards
