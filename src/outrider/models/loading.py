"""From a checkpoint to a decoder: its family's config, its tensors checked, its weights read."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from outrider.errors import CheckpointError, UnsupportedError
from outrider.models.config import DecoderConfig
from outrider.registry import FAMILIES, FAMILY_ALIASES, resolve

if TYPE_CHECKING:
    import torch

    from outrider.checkpoint.checkpoint import Checkpoint
    from outrider.models.decoder import Decoder
    from outrider.models.families.base import Family

EXPERTS = ("qwen3_5_moe",)  # siblings of a family that is run
# Buffers that old checkpoints carry and that follow from the config.
DERIVED = ("rotary_emb.inv_freq", "masked_bias", "attn.bias", "rope_freqs.weight")


def decoder_config(raw: dict[str, Any]) -> DecoderConfig:
    """Map a config.json to the decoder's form by the family that ``model_type`` names.

    Raises:
        UnsupportedError: no such family.
        CheckpointError: a value is missing or impossible.
    """
    name = raw.get("model_type")
    if not isinstance(name, str):
        raise CheckpointError(
            f"Config: expected model_type to be one of {', '.join(sorted(FAMILIES))}; found {name!r}."
        )
    name = FAMILY_ALIASES.get(name, name)
    if name not in FAMILIES:
        if name.removesuffix("_text") in EXPERTS:
            raise UnsupportedError(
                f"Model family {name!r} is a mixture of experts, which is not run here; expected a dense model, as its "
                "siblings of family 'qwen3_5'. vLLM and SGLang run it."
            )
        raise UnsupportedError(
            f"Model family {name!r} is not supported; expected model_type to be one of {', '.join(sorted(FAMILIES))}."
        )
    config: DecoderConfig = resolve("family", FAMILIES, name)().config(raw)
    return config


def _family(config: DecoderConfig) -> "Family":
    found: Family = resolve("family", FAMILIES, config.family)()
    return found


def named(checkpoint: "Checkpoint") -> "Checkpoint":
    """Return a target's checkpoint with its tensors under the names that the decoder knows."""
    family = _family(decoder_config(checkpoint.config))
    return replace(checkpoint, tensors=family.tensors(checkpoint.tensors))


def check_tensors(config: DecoderConfig, checkpoint: "Checkpoint") -> None:
    """Compare what the config implies with what the files hold, by header alone.

    Raises:
        CheckpointError: a tensor is missing, has another shape, or has no place in the decoder.
    """
    wanted = config.tensor_shapes()
    family = _family(config)
    found = family.tensors(checkpoint.tensors)
    where = checkpoint.source.path
    missing = [name for name in wanted if name not in found]
    if missing:
        raise CheckpointError(
            f"{where}: {len(missing)} of {len(wanted)} tensors are missing, first {missing[0]!r}; "
            "the config and the weights belong to different models, or the download is incomplete."
        )
    for name, shape in wanted.items():
        if tuple(found[name].shape) != shape:
            raise CheckpointError(
                f"{where}: tensor {name!r} has shape {tuple(found[name].shape)}, the config implies {shape}; "
                "the config contradicts its tensors."
            )
    spare = [n for n in found if n not in wanted and n != "lm_head.weight" and not n.startswith(family.beside)]
    extra = [n for n in spare if not n.endswith(DERIVED)]
    if extra:
        raise CheckpointError(
            f"{where}: {len(extra)} tensors have no place in family {config.family!r}, first {extra[0]!r}; "
            "the config does not say what they are for."
        )


def load_decoder(
    checkpoint: "Checkpoint", *, dtype: "torch.dtype", device: "torch.device", dummy: bool = False
) -> "Decoder":
    """Build the target.

    Args:
        checkpoint: opened files; with ``dummy`` only its config is used.
        dtype: of the weights in memory.
        device: where it runs.
        dummy: random weights of the right shapes: for shapes and speed, not for text; on the meta device shapes alone.
    """
    from outrider.models.decoder import Decoder

    config = decoder_config(checkpoint.config)
    if dummy:
        from outrider.models.tiny import dummy_values

        return Decoder(config, dummy_values(config.tensor_shapes(), device), dtype=dtype, device=device)
    check_tensors(config, checkpoint)
    from outrider.models.weights import read_tensor, row_reader

    checkpoint = named(checkpoint)
    embed = row_reader(checkpoint, "model.embed_tokens.weight") if device.type == "cpu" else None
    return Decoder(config, lambda name: read_tensor(checkpoint, name), dtype=dtype, device=device, embed=embed)
