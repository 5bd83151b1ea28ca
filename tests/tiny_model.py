"""Writes a tiny model as a Hugging Face folder: random weights, a real tokenizer.json, a chat template."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from outrider.models.loading import decoder_config
from outrider.models.tiny import random_tensors, random_values

BOS, EOS, TURN = "<s>", "</s>", "<turn>"
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<turn>{{ message.role }}\n{{ message.content }}"
    "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<turn>assistant\n{% endif %}"
)

BY_FAMILY: dict[str, dict[str, Any]] = {
    "qwen3": {"head_dim": 8},
    "qwen3_5": {
        "model_type": "qwen3_5_text",  # the family's own name stands for a config that has an inner one
        "head_dim": 8,
        "num_hidden_layers": 4,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 6,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 4,
        "mtp_num_hidden_layers": 1,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
    },
}


def write_tiny_model(
    folder: Path,
    family: str = "llama",
    *,
    seed: int = 0,
    chat_template: str | None = CHAT_TEMPLATE,
    dtype: torch.dtype = torch.float32,
    **config: Any,
) -> Path:
    """Write the model and return its folder.

    Args:
        folder: made where it does not exist.
        family: llama, qwen2, qwen3 or qwen3_5; the last with multi-token prediction heads where the config has some.
        seed: of the weights.
        chat_template: None for a model without one.
        dtype: of the stored weights.
        config: keys of config.json to change or add.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = byte_tokenizer()
    raw = tiny_config(family, tokenizer) | config
    _write_json(folder / "config.json", raw)
    tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(chat_template))
    decoder = decoder_config(raw)
    read = random_tensors(decoder, seed=seed)
    tensors = {name: read(name).to(dtype).contiguous() for name in decoder.tensor_shapes()}
    if decoder.mtp_layers:
        read, shapes = random_values(decoder.mtp_tensor_shapes(), seed=seed + 1), decoder.mtp_tensor_shapes()
        tensors |= {name: read(name).to(dtype).contiguous() for name in shapes}
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    return folder


def tiny_config(family: str, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return a config.json of two layers whose vocabulary is the tokenizer's."""
    return {
        "model_type": family,
        "vocab_size": tokenizer.get_vocab_size(with_added_tokens=True),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "bos_token_id": tokenizer.token_to_id(BOS),
        "eos_token_id": tokenizer.token_to_id(EOS),
    } | BY_FAMILY.get(family, {})


def byte_tokenizer() -> Tokenizer:
    """Return a byte-level BPE of all bytes, a few merges and three special tokens: any text encodes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "a"), ("i", "n"), ("e", "r"), ("Ġ", "the")]
    vocab = {piece: i for i, piece in enumerate([*alphabet, *(a + b for a, b in merges)])}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in (BOS, EOS, TURN)])
    return tokenizer


def _tokenizer_config(chat_template: str | None) -> dict[str, Any]:
    config: dict[str, Any] = {"bos_token": BOS, "eos_token": EOS}
    if chat_template is not None:
        config["chat_template"] = chat_template
    return config


def _write_json(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=1), encoding="utf-8")
