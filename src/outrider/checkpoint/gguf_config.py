"""GGUF metadata in the words of a Hugging Face config.json.

What a file of these architectures can say and this version cannot run exactly is refused here.
Knows nothing of values; of tensors it asks only names and shapes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outrider.checkpoint.checkpoint import TensorInfo
from outrider.checkpoint.gguf_rope import rope_parameters
from outrider.checkpoint.gguf_values import Values
from outrider.errors import CheckpointError, UnsupportedError

FIRST_BLOCK = "model.layers.0"
EMBEDDING = "model.embed_tokens.weight"


def config_from_metadata(
    path: Path,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, TensorInfo],
    *,
    divisors: NDArray[np.float32] | None = None,
) -> dict[str, Any]:
    """Return the config.json that the file's converter was given, as far as a decoder needs it.

    ``divisors`` is the content of the tensor ``rope_freqs.weight``, where the file has one.

    Raises:
        CheckpointError: a key is missing or is not what it should be.
        UnsupportedError: the metadata ask for something that is not run exactly.
    """
    values = Values(path, metadata)
    _refuse_variants(values)
    heads = _heads(values)
    config = {
        "model_type": values.architecture,
        "hidden_act": "silu",
        "vocab_size": _vocabulary(path, tensors),
        "hidden_size": values.integer("embedding_length"),
        "intermediate_size": values.integer("feed_forward_length"),
        "num_hidden_layers": values.integer("block_count"),
        "num_attention_heads": heads.query,
        "num_key_value_heads": heads.key_value,
        "head_dim": heads.size,
        "rms_norm_eps": values.number("attention.layer_norm_rms_epsilon"),
        "max_position_embeddings": values.integer("context_length"),
        "rope_parameters": rope_parameters(values, heads.size, divisors),
        "attention_bias": f"{FIRST_BLOCK}.self_attn.q_proj.bias" in tensors,
        "mlp_bias": f"{FIRST_BLOCK}.mlp.gate_proj.bias" in tensors,
        "tie_word_embeddings": "lm_head.weight" not in tensors,
    }
    window = values.integer("attention.sliding_window", default=0)
    if window:
        config["sliding_window"] = window
    return config | _token_ids(metadata)


@dataclass(frozen=True, slots=True)
class _Heads:
    query: int
    key_value: int
    size: int


def _heads(values: Values) -> _Heads:
    query = values.integer("attention.head_count")
    key_value = values.integer("attention.head_count_kv", default=query)
    hidden = values.integer("embedding_length")
    if query < 1 or key_value < 1 or query % key_value:
        raise CheckpointError(f"{values.path}: {query} query heads cannot share {key_value} key-value heads evenly.")
    size = values.integer("attention.key_length", default=hidden // query)
    value_size = values.integer("attention.value_length", default=size)
    if size != value_size:
        raise UnsupportedError(f"{values.path}: keys of length {size} with values of length {value_size} are not run.")
    return _Heads(query, key_value, size)


def _refuse_variants(values: Values) -> None:
    num_experts = values.integer("expert_count", default=0)
    if num_experts:
        raise UnsupportedError(f"{values.path} is a mixture of {num_experts} experts; only dense models are run.")


def _vocabulary(path: Path, tensors: Mapping[str, TensorInfo]) -> int:
    """Return the number of embeddings: a vocabulary may be padded beyond its tokens."""
    if EMBEDDING not in tensors:
        raise CheckpointError(f"{path} has no token_embd.weight. It is not a whole model.")
    return tensors[EMBEDDING].shape[0]


def _token_ids(metadata: Mapping[str, Any]) -> dict[str, int]:
    names = ("bos_token_id", "eos_token_id")
    found = {name: metadata.get(f"tokenizer.ggml.{name}") for name in names}
    return {name: value for name, value in found.items() if isinstance(value, int)}
