"""A trained drafter as files that engines read: a z-lab folder, a speculators folder, a GGUF file.

A folder appears whole or not at all. Knows no run and no card: it is given a config and tensors under z-lab names.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from outrider.errors import CheckpointError, UnsupportedError, UsageError
from outrider.models.dflash.config import DFlashConfig
from outrider.models.dflash.formats.writing import Verifier, speculators_config, zlab_config

if TYPE_CHECKING:
    from torch import Tensor

    from outrider.train.vocabulary import Vocabulary

Dtype = Literal["bfloat16", "float32"]
DTYPES: tuple[Dtype, ...] = ("bfloat16", "float32")  # not float16, which Qwen3's largest features overflow
WEIGHTS = "model.safetensors"


def export_zlab(config: DFlashConfig, tensors: Mapping[str, "Tensor"], folder: Path, dtype: Dtype = "bfloat16") -> None:
    """Write a z-lab folder, which vLLM, SGLang and llama.cpp's converter read.

    Args:
        config: of the drafter.
        tensors: all that it needs, under z-lab names.
        folder: must not exist, or be empty.
        dtype: of the stored weights.

    Raises:
        UsageError: the folder holds something, or cannot be written.
        CheckpointError: tensors are missing, misshapen or not finite.
        UnsupportedError: the format has no words for something of the drafter.
    """
    _write_folder(folder, zlab_config(config), _checked(config, tensors), dtype)


def export_speculators(
    config: DFlashConfig,
    tensors: Mapping[str, "Tensor"],
    folder: Path,
    dtype: Dtype = "bfloat16",
    *,
    verifier: Verifier | None = None,
) -> None:
    """Write a folder of the speculators library, which vLLM reads.

    The target's table and head are left out, as that library does itself: it takes them from the target when it loads.

    Args:
        config: of the drafter.
        tensors: all that it needs, under z-lab names.
        folder: must not exist, or be empty.
        dtype: of the stored weights.
        verifier: the target, which the library needs to load the drafter by itself.

    Raises:
        UsageError: the folder holds something, or cannot be written.
        CheckpointError: tensors are missing, misshapen or not finite.
        UnsupportedError: the format has no words for something of the drafter.
    """
    keys = speculators_config(config, verifier or Verifier())
    _write_folder(folder, keys, _checked(config, tensors), dtype)


def export_gguf(
    config: DFlashConfig,
    tensors: Mapping[str, "Tensor"],
    folder: Path,
    dtype: Dtype = "bfloat16",
    *,
    vocabulary: "Vocabulary",
) -> Path:
    """Write a GGUF file of the architecture ``dflash`` into a folder, and return it.

    Args:
        config: of the drafter.
        tensors: all that it needs, under z-lab names.
        folder: must not exist, or be empty.
        dtype: of the stored matrices; vectors stay float32, as llama.cpp wants them.
        vocabulary: the target's: llama.cpp loads no drafter without one of the target's size.

    Raises:
        UsageError: the folder holds something, or cannot be written.
        CheckpointError: tensors are missing, misshapen or not finite.
        UnsupportedError: llama.cpp does not run something of the drafter.
    """
    from outrider.train.gguf_export import write_gguf

    checked = _checked(config, tensors)
    name = f"dflash-{'BF16' if dtype == 'bfloat16' else 'F32'}.gguf"
    _in_folder(folder, lambda place: write_gguf(place / name, config, checked, dtype, vocabulary))
    return folder / name


def _checked(config: DFlashConfig, tensors: Mapping[str, "Tensor"]) -> dict[str, "Tensor"]:
    """Return the tensors that the config calls for, in its order."""
    if config.mask_embedding:
        raise UnsupportedError("A drafter with a vector of its own in its masked slots is not exported.")
    shapes = config.tensor_shapes()
    missing, foreign = (
        [name for name in shapes if name not in tensors],
        [name for name in tensors if name not in shapes],
    )
    if missing or foreign:
        raise CheckpointError(
            f"The weights do not fit the config: {len(missing)} tensors missing{_first(missing)}, {len(foreign)} "
            f"unknown{_first(foreign)}; they are of another drafter."
        )
    for name, shape in shapes.items():
        _check_tensor(name, tensors[name], shape)
    return {name: tensors[name] for name in shapes}


def _check_tensor(name: str, tensor: "Tensor", shape: tuple[int, ...]) -> None:
    if tuple(tensor.shape) != shape:
        raise CheckpointError(
            f"{name}: expected shape {list(shape)}, as the config says, found {list(tensor.shape)}; they are of "
            "another drafter."
        )
    if not all(bool(extreme.isfinite()) for extreme in tensor.aminmax()):
        raise CheckpointError(f"{name} holds values that are not finite: training broke; export an earlier step.")


def _first(names: list[str]) -> str:
    return f" ({names[0]})" if names else ""


def _write_folder(folder: Path, keys: dict[str, Any], tensors: Mapping[str, "Tensor"], dtype: Dtype) -> None:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    kind: torch.dtype = getattr(torch, dtype)
    plain = {name: tensor.detach().cpu() for name, tensor in tensors.items()}
    stored = {name: (each.to(kind) if each.is_floating_point() else each).contiguous() for name, each in plain.items()}

    def write(place: Path) -> None:
        try:
            save_file(stored, place / WEIGHTS, metadata={"format": "pt"})
        except SafetensorError as error:  # its name for a full disk, too
            raise UsageError(f"Cannot write {folder}: {error}; give another place.") from error
        text = json.dumps(keys | {"dtype": dtype}, indent=2, sort_keys=True)
        (place / "config.json").write_text(text + "\n", encoding="utf-8")

    _in_folder(folder, write)


def _in_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a folder beside the wanted one, which then takes its name."""
    check_free(folder)
    place = folder.with_name(f".{folder.name}.unfinished")
    try:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        write(place)
        if folder.exists():
            folder.rmdir()
        place.rename(folder)
    except OSError as error:
        raise UsageError(f"Cannot write {folder}: {error.strerror or error}; give another place.") from error
    finally:
        shutil.rmtree(place, ignore_errors=True)


def check_free(folder: Path) -> None:
    """Refuse a place that holds something.

    Raises:
        UsageError: it does, or it is no folder.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not an empty folder; an export overwrites nothing: name another one.")
