"""GGUF's names of tensors in those of Hugging Face, and the ways of storing that are read.

A name that is not in the table keeps its own, so that nothing in a file goes unseen.
"""

import re

ARCHITECTURES = ("llama", "qwen2", "qwen3", "qwen35")

# What outrider.models.weights turns into numbers; the tests try each.
FLOAT_TYPES = ("F32", "F16", "BF16")
LEGACY_TYPES = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")
K_TYPES = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")
TABLE_TYPES = ("I32", "I64")  # of token ids
STORED_TYPES = frozenset((*FLOAT_TYPES, *LEGACY_TYPES, *K_TYPES, *TABLE_TYPES))

WHOLE = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
IN_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
NAME = re.compile(r"(?:blk\.(?P<block>\d+)\.)?(?P<part>\w+)\.(?P<end>weight|bias)", re.ASCII)


def hugging_face_name(name: str) -> str:
    """Return the Hugging Face name of a GGUF tensor, or ``name`` itself if it has none."""
    match = NAME.fullmatch(name)
    if match is None:
        return name
    block, part, end = match["block"], match["part"], match["end"]
    if block is None and part in WHOLE:
        return f"{WHOLE[part]}.{end}"
    if block is not None and part in IN_BLOCK:
        return f"model.layers.{int(block)}.{IN_BLOCK[part]}.{end}"
    return name
