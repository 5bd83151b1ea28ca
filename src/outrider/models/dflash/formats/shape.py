"""Sizes that all formats share: the layers', the drafter's own words, the token in masked slots."""

from collections.abc import Container
from typing import NamedTuple

from outrider.models.dflash.formats.keys import Keys, shown

SIZES = (
    *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
    *("head_dim", "vocab_size", "rms_norm_eps", "hidden_act", "attention_bias", "mlp_bias"),
)


class Backbone(NamedTuple):
    """Sizes of the layers, under the names of ``DFlashConfig``."""

    vocab_size: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    max_positions: int
    norm_eps: float
    biases: bool


class OwnWords(NamedTuple):
    """What the drafter brings instead of sharing the target's, under the names of ``DFlashConfig``."""

    draft_vocab_size: int | None
    own_embedding: bool
    own_head: bool


class MaskToken(NamedTuple):
    """What the files hold for the masked slots.

    Attributes:
        embedding: whether there is a vector that stands in them.
    """

    embedding: bool

    def read(self, keys: Keys, *names: str) -> int | None:
        """Return the mask token, without which only a vector of its own helps."""
        token = keys.optional(*names, least=0)
        if token is None and not self.embedding:
            keys.say(
                names[0],
                "expected the token of the masked slots, found none; it differs between drafters of one target, so "
                "take it from the training config.",
                fatal=True,
            )
        if token is not None and token == keys.get("eos_token_id"):
            keys.notes.append(f"{names[0]} is {token}, the end of text too; a drafter is seldom trained so.")
        return token


def read_backbone(keys: Keys) -> Backbone:
    """Return the sizes; defaults are those of Transformers' Qwen3Config."""
    queries = keys.integer("num_attention_heads")
    groups = keys.integer("num_key_value_heads", queries)
    size = keys.integer("head_dim", 128)
    if queries % groups:
        keys.say(
            "num_key_value_heads",
            f"{queries} query heads cannot share {groups} key/value heads evenly; correct either.",
            fatal=True,
        )
    if size % 2:
        keys.say(
            "head_dim", f"expected an even number, whose halves RoPE rotates, found {size}; correct it.", fatal=True
        )
    if (act := keys.get("hidden_act")) not in (None, "silu"):
        keys.say("hidden_act", f"expected silu, found {shown(act)}, which is not run.", fatal=True)
    if keys.flag("mlp_bias"):
        keys.say("mlp_bias", "it is true: biases in the MLP are not run.", fatal=True)
    return Backbone(
        vocab_size=keys.integer("vocab_size"),
        hidden_size=keys.integer("hidden_size"),
        num_heads=queries,
        num_kv_heads=groups,
        head_dim=size,
        intermediate_size=keys.integer("intermediate_size"),
        max_positions=keys.integer("max_position_embeddings", 32768),
        norm_eps=keys.number("rms_norm_eps", 1e-6),
        biases=keys.flag("attention_bias") is True,
    )


def own_words(words: int | None, vocab_size: int, tensors: Container[str]) -> OwnWords:
    """Return what the drafter brings: its files show that, for trainers store tables that configs do not mention.

    Args:
        words: of its head.
        vocab_size: of the target.
        tensors: under z-lab names.
    """
    reduced = words if words != vocab_size else None
    own_head = reduced is not None or "lm_head.weight" in tensors
    return OwnWords(reduced, "embed_tokens.weight" in tensors, own_head)
