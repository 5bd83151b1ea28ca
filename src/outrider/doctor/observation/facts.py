"""What files, settings and the launch command say, whatever the key is called. Reads; judges nothing."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from outrider.doctor.evidence import Evidence

FEATURE_FED = frozenset({"dflash", "dflash2", "dspark", "ddtree", "eagle", "eagle3"})
"""Methods whose drafter reads hidden states of the target."""
BLOCK = frozenset({"dflash", "dflash2", "dspark", "ddtree"})
"""Methods that fill a block of masks in one pass."""
_DRAFTED = re.compile(r"num[_-]speculative[_-]tokens\W{1,4}(\d+)|spec-draft-n-max\s+(\d+)|draft-max\s+(\d+)")
_DRAFTED_WITH_ANCHOR = re.compile(r"num-draft-tokens\s+(\d+)|dflash-block-size\s+(\d+)")
_SPARSE = re.compile(r"a\d+(\.\d+)?b|moe|mixture|sparse", re.IGNORECASE)
_LOW_BITS = re.compile(
    r"fp8|fp4|int[248]|nvfp4|mxfp|awq|gptq|w\d+a\d+|q\d|iq\d|turboquant|\d-bit|fp16|float16|half", re.IGNORECASE
)
_RECURRENT = re.compile(
    r"qwen[\s-]?3\.[568]|qwen3-next|nemotron-?h|mamba|jamba|lfm2|kimi-linear|granite-?4", re.IGNORECASE
)
"""Names of model families with recurrent layers."""


@dataclass(frozen=True)
class Facts:
    """Facts by their meaning; None where nothing is said."""

    evidence: Evidence

    @cached_property
    def drafter(self) -> dict[str, Any]:
        """The drafter's config, nested parts laid over the top level."""
        return _flat(self.evidence.drafter.config)

    @cached_property
    def target(self) -> dict[str, Any]:
        """The target's config, likewise."""
        return _flat(self.evidence.target.config)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Engine and speculation settings; keys in snake case without dashes."""
        given = {**self.evidence.engine.settings, **self.evidence.speculation.settings}
        return {key.lower().replace("-", "_"): value for key, value in given.items()}

    @property
    def command(self) -> str:
        """The launch command, lower case."""
        return (self.evidence.engine.command or "").lower()

    @cached_property
    def drafted(self) -> int | None:
        """Draft length K, the anchor not counted."""
        if self.evidence.speculation.num_speculative_tokens is not None:
            return self.evidence.speculation.num_speculative_tokens
        if found := _DRAFTED.search(self.command):
            return int(next(g for g in found.groups() if g))
        if found := _DRAFTED_WITH_ANCHOR.search(self.command):
            return int(next(g for g in found.groups() if g)) - 1
        steps = self.settings.get("speculative_num_draft_tokens")
        return int(steps) - 1 if isinstance(steps, int) else None

    @property
    def block(self) -> int | None:
        """The drafter's trained block, the anchor counted."""
        value = self.drafter.get("block_size")
        return value if isinstance(value, int) else None

    @property
    def trained_depth(self) -> int | None:
        """Draft tokens that the drafter was trained to give; repeated heads have no such limit."""
        for config in (self.drafter, self.target):
            for key in ("dspark_block_size", "n_predict"):
                if isinstance(config.get(key), int):
                    return int(config[key])
        if self.block is None:
            return None
        return self.block if self.evidence.method == "dspark" else self.block - 1

    @property
    def taps(self) -> list[int] | None:
        """Ids of the tapped layers as the config lists them, whatever convention."""
        keys = ("target_layer_ids", "eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids", "layer_ids")
        found = next((self.drafter[key] for key in keys if isinstance(self.drafter.get(key), list)), None)
        return [int(i) for i in found if isinstance(i, int)] if found is not None else None

    @property
    def layer_types(self) -> list[str]:
        """Of the drafter."""
        found = self.drafter.get("layer_types")
        return [str(kind) for kind in found] if isinstance(found, list) else []

    @property
    def windowed(self) -> bool:
        """The drafter has sliding-window layers."""
        if self.layer_types:
            return any("sliding" in kind for kind in self.layer_types)
        if self.drafter.get("use_sliding_window") is False:
            return False
        keys = ("use_sliding_window", "use_swa", "sliding_window", "swa_window_size")
        return any(self.drafter.get(key) for key in keys)

    @property
    def mixed(self) -> bool:
        """Sliding and full layers side by side."""
        return self.windowed and any("full" in kind for kind in self.layer_types)

    @property
    def window(self) -> int | None:
        """Tokens."""
        value = self.drafter.get("sliding_window") or self.drafter.get("swa_window_size")
        return value if isinstance(value, int) else None

    @property
    def feature_fed(self) -> bool:
        """The drafter reads hidden states of the target; a method that is not named may."""
        return self.evidence.method is None or self.evidence.method in FEATURE_FED

    @property
    def block_method(self) -> bool:
        """The drafter fills a block of masks."""
        return self.evidence.method in BLOCK

    @property
    def built_in(self) -> bool:
        """Draft weights live in the target's checkpoint."""
        name = (self.evidence.drafter.name or "").lower()
        return self.evidence.method == "mtp" or "built-in" in name or "built in" in name

    @property
    def hybrid(self) -> bool | None:
        """The target has recurrent layers."""
        if self.evidence.target.hybrid is not None:
            return self.evidence.target.hybrid
        kinds = self.target.get("layer_types")
        if isinstance(kinds, list):
            return any("linear" in str(k) or "mamba" in str(k) or "recurrent" in str(k) for k in kinds)
        return True if _RECURRENT.search(self.evidence.target.name or "") else None

    @property
    def sparse(self) -> bool:
        """A mixture of experts with few active weights."""
        return bool(_SPARSE.search(self.evidence.target.name or "")) or "num_experts" in self.target

    @property
    def low_bits(self) -> dict[str, str]:
        """Parts that run below bf16 or in fp16, by part: target, drafter, cache."""
        parts = {"target": self.evidence.target.quantisation, "drafter": self.evidence.drafter.quantisation}
        parts["cache"] = next(
            (str(v) for k, v in self.settings.items() if re.search(r"kv_cache_dtype|cache_?type|draft_kv|ctk", k)), None
        )
        return {part: value for part, value in parts.items() if value and _LOW_BITS.search(value)}

    @property
    def vocabulary(self) -> tuple[int | None, int | None]:
        """Draft and target vocabulary."""
        draft, target = self.drafter.get("draft_vocab_size"), self.target.get("vocab_size")
        return (draft if isinstance(draft, int) else None, target if isinstance(target, int) else None)

    @property
    def prefix_caching(self) -> bool | None:
        """As set; None when nothing is said."""
        if "no-enable-prefix-caching" in self.command or "disable-radix-cache" in self.command:
            return False
        if "enable-prefix-caching" in self.command:
            return True
        for key, value in self.settings.items():
            if "prefix_cach" in key:
                return bool(value)
            if "radix" in key and "disable" in key:
                return not value
        return None

    @property
    def thinking(self) -> bool | None:
        """Thinking mode of the traffic."""
        return self.evidence.traffic.thinking


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """Nested parts that hold settings of the same network, laid over the top level."""
    found = dict(config)
    for key in ("text_config", "transformer_layer_config", "rope_parameters", "eagle_config", "dflash_config"):
        part = config.get(key)
        if isinstance(part, dict):
            found |= part
    return found
