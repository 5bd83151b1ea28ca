"""Reading a Hugging Face config.json: what the families share."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from outrider.errors import CheckpointError, UnsupportedError
from outrider.models.config import DecoderConfig, Rope

if TYPE_CHECKING:
    from outrider.checkpoint.checkpoint import TensorInfo

ROPE_KINDS = ("default", "linear", "llama3", "yarn")
ORIGINAL = "original_max_position_embeddings"
REQUIRED_OPTIONS = {
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", ORIGINAL),
    "yarn": ("factor", ORIGINAL),
}
OPTIONAL_NUMBERS = {"yarn": ("attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")}
# Of all kinds together: configs carry options of other kinds along, which then mean nothing.
ROPE_OPTIONS = (
    *("rope_type", "type", "rope_theta", "partial_rotary_factor", "finetuned", "truncate"),
    *REQUIRED_OPTIONS["llama3"],
    *OPTIONAL_NUMBERS["yarn"],
)


class Family:
    """What a family is by default of its checkpoints.

    Attributes:
        beside: how the names of tensors start that may stand beside the decoder's.
    """

    beside: tuple[str, ...] = ()

    def tensors(self, found: "Mapping[str, TensorInfo]") -> "Mapping[str, TensorInfo]":
        """Return the tensors under the names that the decoder knows, without what is of no use to it."""
        return found


class RawConfig:
    """A config.json with typed, checked access."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.family = str(raw.get("model_type"))

    def integer(self, key: str, default: int | None = None, *, least: int = 1) -> int:
        """Return a whole number of at least ``least``; null counts as the default.

        Raises:
            CheckpointError: missing without a default, or something else.
        """
        value = self.raw.get(key)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise CheckpointError(
                f"Config key {key!r} of family {self.family!r}: expected a whole number of at least {least}, "
                f"found {value!r}."
            )
        return value

    def number(self, key: str, default: float) -> float:
        """Return a number above 0.

        Raises:
            CheckpointError: it is something else.
        """
        return self._above_0(key, self.raw.get(key, default))

    def _above_0(self, key: str, value: Any) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 < value <= sys.float_info.max:  # JSON as Python reads it knows NaN and Infinity
            raise CheckpointError(
                f"Config key {key!r} of family {self.family!r}: expected a number above 0, found {value!r}."
            )
        return float(value)

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Return a truth value; null counts as the default."""
        value = self.raw.get(key)
        return default if value is None else bool(value)

    def require(self, key: str, value: Any, *, default: Any) -> None:
        """Refuse a variant that the decoder does not have.

        Raises:
            UnsupportedError: the key holds anything else than ``value``.
        """
        found = self.raw.get(key)
        found = default if found is None else found
        if found != value:
            raise UnsupportedError(
                f"Config key {key!r}={found!r} of family {self.family!r} is not supported; expected {value!r}."
            )

    def heads(self, default_head_dim: int | None = None) -> tuple[int, int, int]:
        """Return query heads, key/value heads and head size, which must divide.

        Raises:
            CheckpointError: query heads are no multiple of key/value heads, or a head has no halves to rotate.
        """
        queries = self.integer("num_attention_heads")
        keys = self.integer("num_key_value_heads", queries)
        if queries % keys:
            raise CheckpointError(
                f"Config: num_attention_heads={queries} is no multiple of num_key_value_heads={keys}."
            )
        size = self.integer("head_dim", default_head_dim or self.integer("hidden_size") // queries)
        if size % 2:
            raise CheckpointError(f"Config: expected an even head_dim, whose halves RoPE rotates; found {size}.")
        return queries, keys, size

    def rope(self, default_theta: float = 10000.0) -> Rope:
        """Return the rotary embedding, from ``rope_parameters`` or from ``rope_theta`` and ``rope_scaling``.

        Raises:
            UnsupportedError: a kind whose angles depend on the length of the text, an unknown one, or an unknown
                option.
            CheckpointError: an option is missing or impossible.
        """
        options = self._rope_options()
        self.require("partial_rotary_factor", 1.0, default=1.0)
        kind = options.pop("rope_type", options.pop("type", "default"))
        options.pop("type", None)
        if kind not in ROPE_KINDS:
            raise UnsupportedError(
                f"RoPE type {kind!r} of family {self.family!r} is not supported; "
                f"expected one of {', '.join(ROPE_KINDS)}."
            )
        theta = self._above_0("rope_theta", options.pop("rope_theta", self.raw.get("rope_theta", default_theta)))
        if options.get(ORIGINAL) is None and kind == "yarn":
            options[ORIGINAL] = self.raw.get("max_position_embeddings")
        self._check_rope(kind, theta, options)
        return Rope(theta, cast("Literal['default', 'linear', 'llama3', 'yarn']", kind), options)

    def _rope_options(self) -> dict[str, Any]:
        """Return a copy of the options, all of whose keys are known and apply to all layers and whole heads."""
        key = "rope_scaling" if self.raw.get("rope_parameters") is None else "rope_parameters"
        options = self.raw.get(key)
        if options is None:
            return {}
        if not isinstance(options, dict):
            raise CheckpointError(
                f"Config key {key!r} of family {self.family!r}: expected an object, found {options!r}."
            )
        nested = [name for name, value in options.items() if isinstance(value, dict)]
        if nested:
            raise UnsupportedError(
                f"Config key {key!r} of family {self.family!r} holds settings by layer type ({', '.join(nested)}), "
                "which are not supported; expected one setting for all layers."
            )
        unknown = [name for name in options if name not in ROPE_OPTIONS]
        if unknown:
            raise UnsupportedError(
                f"Config key {key!r} of family {self.family!r} has options that are not supported: "
                f"{', '.join(unknown)}; expected only {', '.join(ROPE_OPTIONS)}."
            )
        RawConfig({**options, "model_type": self.family}).require("partial_rotary_factor", 1.0, default=1.0)
        return {name: value for name, value in options.items() if name != "partial_rotary_factor"}

    def _check_rope(self, kind: str, theta: float, options: dict[str, Any]) -> None:
        needed = REQUIRED_OPTIONS.get(kind, ())
        missing = [key for key in needed if options.get(key) is None]
        if missing:
            raise CheckpointError(f"RoPE type {kind!r} needs {', '.join(missing)} in the config; not found.")
        for key in (*needed, *OPTIONAL_NUMBERS.get(kind, ())):
            value = options.get(key)
            # As in Transformers, null counts as not given, and so does 0 for the two mscales.
            if value is not None and not (key.startswith("mscale") and value == 0):
                self._above_0(key, value)
        if kind == "llama3" and options["high_freq_factor"] <= options["low_freq_factor"]:
            raise CheckpointError(
                f"RoPE type 'llama3': expected high_freq_factor above low_freq_factor, found "
                f"{options['high_freq_factor']!r} and {options['low_freq_factor']!r}."
            )
        if kind == "yarn" and theta == 1:
            raise CheckpointError("RoPE type 'yarn': expected a rope_theta other than 1, found 1.")

    def decoder(
        self,
        *,
        max_positions: int,
        windows: tuple[int | None, ...],
        head_dim: int | None = None,
        qkv_bias: bool = False,
        output_bias: bool = False,
        mlp_bias: bool = False,
        qk_norm: bool = False,
        **variants: Any,
    ) -> DecoderConfig:
        """Return the decoder's form: the keys all families share, and what this family says of the rest.

        Args:
            max_positions: where the config does not say.
            windows: one entry a layer.
            head_dim: where the config does not say; None for hidden size / heads.
            qkv_bias: biases on queries, keys and values.
            output_bias: a bias on the attention's output.
            mlp_bias: biases in the MLP.
            qk_norm: norms on queries and keys.
            variants: further fields of the decoder's form that only some families have.
        """
        self.require("hidden_act", "silu", default="silu")
        queries, keys, size = self.heads(head_dim)
        return DecoderConfig(
            family=self.family,
            vocab_size=self.integer("vocab_size"),
            hidden_size=self.integer("hidden_size"),
            num_layers=self.integer("num_hidden_layers"),
            num_heads=queries,
            num_kv_heads=keys,
            head_dim=size,
            intermediate_size=self.integer("intermediate_size"),
            max_positions=self.integer("max_position_embeddings", max_positions),
            norm_eps=self.number("rms_norm_eps", 1e-6),
            rope=self.rope(),
            windows=windows,
            qkv_bias=qkv_bias,
            output_bias=output_bias,
            mlp_bias=mlp_bias,
            qk_norm=qk_norm,
            tied=self.flag("tie_word_embeddings"),
            **variants,
        )

    def windows(self, *, from_layer: int) -> tuple[int | None, ...]:
        """Return each layer's window: by ``layer_types`` if given, else sliding from ``from_layer`` on.

        Raises:
            CheckpointError: a sliding layer without a size, or a list that is not one entry a layer.
        """
        layers = self.integer("num_hidden_layers")
        size = self.raw.get("sliding_window")
        kinds = self.raw.get("layer_types")
        if kinds is None:
            sliding = from_layer if size else layers
            kinds = ["full_attention"] * min(sliding, layers)
            kinds += ["sliding_attention"] * (layers - len(kinds))
        if not isinstance(kinds, list):
            raise CheckpointError(f"Config: expected layer_types to be a list, one entry a layer; found {kinds!r}.")
        if len(kinds) != layers:
            raise CheckpointError(
                f"Config: layer_types has {len(kinds)} entries, num_hidden_layers is {layers}; expected one a layer."
            )
        return tuple(self._window(kind, size) for kind in kinds)

    def _window(self, kind: str, size: Any) -> int | None:
        if kind == "full_attention":
            return None
        if kind != "sliding_attention":
            raise UnsupportedError(
                f"Layer type {kind!r} of family {self.family!r} is not supported; "
                "expected full_attention or sliding_attention."
            )
        if not isinstance(size, int) or size < 1:
            raise CheckpointError(
                f"Config: a layer is sliding_attention but sliding_window is {size!r}; expected its size."
            )
        return size
