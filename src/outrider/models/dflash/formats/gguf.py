"""A GGUF drafter: llama.cpp's architecture ``dflash``, its metadata and its tensor names.

Rows of queries and keys are not reordered: llama.cpp rotates halves here, as z-lab does, and its converter undoes
interleaved pairs. ``target_layers`` counts the inputs of layers, i + 1; ``d2t`` holds target ids, not offsets.
Read from llama.cpp b11434.
"""

import re
from collections.abc import Mapping
from typing import Any

from outrider.checkpoint import Checkpoint, TensorInfo
from outrider.checkpoint.gguf import rope_divisors
from outrider.checkpoint.gguf_names import IN_BLOCK
from outrider.checkpoint.gguf_rope import rope_parameters
from outrider.checkpoint.gguf_values import Values
from outrider.errors import CheckpointError
from outrider.models.config import Rope
from outrider.models.dflash.config import Confidence, DFlashConfig, LayerMask, Markov
from outrider.models.dflash.formats.keys import Keys, is_integer, shown
from outrider.models.dflash.formats.shape import MaskToken, OwnWords
from outrider.models.dflash.formats.successors import CONFIDENCE, read_convolution, read_selector
from outrider.models.families.base import RawConfig

ARCHITECTURE = "dflash"
BLOCK = 16  # llama.cpp's default
W1 = "markov_head.markov_w1.weight"
WHOLE = {
    "fc": "fc",
    "enc.output_norm": "hidden_norm",
    "output_norm": "norm",
    "output": "lm_head",
    "token_embd": "embed_tokens",
    "markov_w1": "markov_head.markov_w1",
    "markov_w2": "markov_head.markov_w2",
    "conf_proj": "confidence_head.proj",
    "selector_hidden": "candidate_selector.hidden_projection",
}
BARE = {"selector_predecessor": "candidate_selector.predecessor_codebook", "d2t": "d2t"}
BARE |= {"selector_successor": "candidate_selector.successor_codebook"}
BARE_IN_BLOCK = {
    "attn_sinks": "self_attn.sinks",
    "attn_conv_base": "attention_conv.base_kernel",
    "ffn_conv_base": "mlp_conv.base_kernel",
}
PARTS = IN_BLOCK | {
    "attn_conv_proj": "attention_conv.kernel_projection",
    "ffn_conv_proj": "mlp_conv.kernel_projection",
}
NAME = re.compile(r"(?:blk\.(?P<block>\d+)\.)?(?P<part>enc\.\w+|\w+?)(?P<end>\.weight|\.bias)?", re.ASCII)
UNDERSTOOD = frozenset(
    (
        *("block_size", "target_layers", "target_hidden_size", "vocab_size", "context_length", "embedding_length"),
        *("feed_forward_length", "block_count", "hidden_activation", "sample_from_anchor", "has_confidence_head"),
        *("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k"),
        *("embedding_scale", "logit_scale", "final_logit_softcapping", "hyper_connection.count", "mask_token_id"),
        *("attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length"),
        *("attention.layer_norm_rms_epsilon", "attention.causal", "attention.sliding_window", "attention.scale"),
        *("attention.sliding_window_pattern", "attention.value_scale"),
        *("rope.freq_base", "rope.dimension_count", "rope.dimension_sections", "rope.scaling.type"),
        *("rope.scaling.factor", "rope.scaling.original_context_length", "rope.scaling.yarn_beta_fast"),
        *("rope.scaling.yarn_beta_slow", "rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor"),
        *("rope.scaling.yarn_ext_factor", "rope.scaling.yarn_log_multiplier", "rope.scaling.finetuned"),
    )
)


def gguf_name(name: str) -> str:
    """Return the z-lab name of a tensor, or its own if it has none."""
    match = NAME.fullmatch(name)
    if match is None:
        return name
    block, part, end = match["block"], match["part"], match["end"] or ""
    bare, full = (BARE, WHOLE) if block is None else (BARE_IN_BLOCK, PARTS)
    prefix = "" if block is None else f"layers.{int(block)}."
    if part in bare and end in ("", ".weight"):
        return f"{prefix}{bare[part]}"
    return f"{prefix}{full[part]}{end}" if part in full and end else name


def gguf_keys(metadata: Mapping[str, Any]) -> Keys:
    """Return the keys under the architecture's prefix, and the mask token."""
    prefix = f"{ARCHITECTURE}."
    held = {key.removeprefix(prefix): _rounded(value) for key, value in metadata.items() if key.startswith(prefix)}
    return Keys({prefix: held, "tokenizer.ggml.": {"mask_token_id": metadata.get("tokenizer.ggml.mask_token_id")}})


def read_gguf(keys: Keys, checkpoint: Checkpoint, tensors: Mapping[str, TensorInfo], mask: MaskToken) -> DFlashConfig:
    """Return what the metadata say; what is wrong with them is noted in ``keys``.

    Args:
        keys: made by ``gguf_keys``.
        checkpoint: the opened file.
        tensors: under z-lab names.
        mask: whether the file brings a vector for the masked slots.
    """
    _refuse_variants(keys)
    hidden, queries = keys.integer("embedding_length"), keys.integer("attention.head_count")
    size = keys.integer("attention.key_length", max(1, hidden // queries))
    layers = keys.integer("block_count")
    vocabulary = _vocabulary(keys, checkpoint, tensors)
    dflash2 = keys.get("selector_rank") is not None
    markov = Markov(tensors[W1].shape[-1], "vanilla") if W1 in tensors else None
    confidence = Confidence(with_markov=markov is not None) if CONFIDENCE in tensors else None
    sampled = keys.flag("sample_from_anchor")
    config = DFlashConfig(
        kind="dflash2" if dflash2 else "dspark" if markov or confidence else "dflash",
        origin="gguf",
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_heads=queries,
        num_kv_heads=keys.integer("attention.head_count_kv", queries),
        head_dim=size,
        intermediate_size=keys.integer("feed_forward_length"),
        max_positions=keys.integer("context_length"),
        norm_eps=keys.number("attention.layer_norm_rms_epsilon", 1e-6),
        rope=_rope(keys, checkpoint, size),
        layers=_masks(keys, layers),
        block_size=_block_size(keys),
        anchor_predicts=bool(markov) if sampled is None else sampled,
        mask_token=mask.read(keys, "mask_token_id"),
        mask_embedding=mask.embedding,
        taps=_taps(keys),
        target_hidden_size=keys.integer("target_hidden_size", hidden),
        **_own_words(tensors)._asdict(),
        embedding_scale=keys.number("embedding_scale", 1.0),
        output_multiplier=keys.number("logit_scale", 1.0),
        soft_cap=keys.number("final_logit_softcapping", 1.0) if keys.get("final_logit_softcapping") else None,
        value_scale=keys.number("attention.value_scale", 1.0),
        sinks="layers.0.self_attn.sinks" in tensors,
        biases="layers.0.self_attn.q_proj.bias" in tensors,
        convolution=read_convolution(keys) if dflash2 else None,
        selector=read_selector(keys) if dflash2 else None,
        markov=markov,
        confidence=confidence,
    )
    keys.report_unknown(UNDERSTOOD)
    return config


def with_tied_head(tensors: Mapping[str, TensorInfo]) -> dict[str, TensorInfo]:
    """Let a drafter with a table of its own and no head use the table as its head, as llama.cpp does."""
    tied = {"lm_head.weight": tensors["embed_tokens.weight"]} if "embed_tokens.weight" in tensors else {}
    return tied | dict(tensors)


def _rounded(value: Any) -> Any:
    """Round off what 32 bits add: 1e-5 reads as 9.99999975e-06."""
    return float(f"{value:.7g}") if isinstance(value, float) else value


def _refuse_variants(keys: Keys) -> None:
    if (act := keys.get("hidden_activation")) not in (None, "silu"):
        keys.say("hidden_activation", f"expected silu, found {shown(act)}, which is not run.", fatal=True)
    if keys.get("hyper_connection.count"):
        keys.say("hyper_connection.count", "DeepSeek-V4 drafters are not run.", fatal=True)
    size, values = keys.get("attention.key_length"), keys.get("attention.value_length")
    if size != values and None not in (size, values):
        keys.say("attention.value_length", f"keys of {size} with values of {values} are not run.", fatal=True)
    if (scale := keys.get("attention.scale")) and size and abs(scale * size**0.5 - 1) > 1e-4:  # noqa: PLR2004 -- 32 bits
        keys.say("attention.scale", f"expected {size**-0.5:g}, found {scale:g}, which is not run.", fatal=True)


def _vocabulary(keys: Keys, checkpoint: Checkpoint, tensors: Mapping[str, TensorInfo]) -> int:
    """Words of the target: rows of a table where there is one, else the tokens, which may be fewer."""
    for name in ("embed_tokens.weight", W1, "candidate_selector.predecessor_codebook"):
        if name in tensors:
            return tensors[name].shape[0]
    tokens = checkpoint.metadata.get("tokenizer.ggml.tokens")
    return keys.integer("vocab_size", len(tokens) if isinstance(tokens, list) and tokens else None)


def _own_words(tensors: Mapping[str, TensorInfo]) -> OwnWords:
    words = tensors["d2t"].shape[0] if "d2t" in tensors else None
    return OwnWords(words, "embed_tokens.weight" in tensors, "lm_head.weight" in tensors)


def _rope(keys: Keys, checkpoint: Checkpoint, size: int) -> Rope:
    rotated, sections = keys.get("rope.dimension_count"), keys.get("rope.dimension_sections")
    if rotated not in (None, size):
        keys.say(
            "rope.dimension_count",
            f"expected {size}, the whole head, found {shown(rotated)}, from a partial_rotary_factor copied from the "
            "target; convert again with 1 (allowed, whole heads are rotated).",
        )
    if sections is not None and [*sections][:1] != [size // 2]:
        keys.say(
            "rope.dimension_sections",
            f"expected [{size // 2}, 0, 0, 0], found {shown(sections)} (allowed, positions have one axis).",
        )
    metadata = {key: value for key, value in checkpoint.metadata.items() if not key.endswith("rope.dimension_count")}
    try:
        options = rope_parameters(Values(checkpoint.source.path, metadata), size, rope_divisors(checkpoint))
        return RawConfig({"model_type": ARCHITECTURE, "rope_parameters": options}).rope()
    except CheckpointError as error:
        keys.say("rope", str(error), fatal=True)
        return Rope(10000.0)


def _masks(keys: Keys, num_layers: int) -> tuple[LayerMask, ...]:
    window = keys.get("attention.sliding_window")
    pattern = keys.get("attention.sliding_window_pattern")
    if not window:
        pattern = [False] * num_layers
    if not is_integer(window or 0) or not isinstance(pattern, list) or len(pattern) != num_layers:
        keys.say(
            "attention.sliding_window_pattern",
            f"expected a window and true or false for each of {num_layers} layers, found {shown(window)} and "
            f"{shown(pattern)}.",
            fatal=True,
        )
        return (LayerMask(None, causal=False),) * num_layers
    causal = keys.flag("attention.causal")
    if causal is None and any(pattern):
        keys.notes.append(
            "attention.causal is absent, as the converter leaves it where the config said nothing: sliding layers are "
            "causal in the block, as z-lab trains them. llama.cpp runs them as not causal."
        )
    return tuple(
        LayerMask(window if slides else None, bool(slides) if causal is None else causal) for slides in pattern
    )


def _block_size(keys: Keys) -> int:
    if keys.get("block_size") is None:
        keys.notes.append(f"block_size is absent: {BLOCK}, llama.cpp's default.")
    return keys.integer("block_size", BLOCK)


def _taps(keys: Keys) -> tuple[int, ...]:
    layers = keys.integers("target_layers")
    if layers is None:
        keys.say(
            "target_layers",
            "expected the target's layers that feed fc, found none; they are never guessed: convert again from a "
            "config with target_layer_ids.",
            fatal=True,
        )
        return (0,)
    return tuple(layer - 1 for layer in layers)
