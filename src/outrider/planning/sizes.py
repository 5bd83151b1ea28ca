"""What a pass of a model reads, in bytes: from the headers of its files, or from the data file where it is known."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import prod
from typing import Any

from outrider.checkpoint import Checkpoint, open_checkpoint, resolve
from outrider.checkpoint.checkpoint import TensorInfo
from outrider.checkpoint.source import is_hub_name
from outrider.errors import CheckpointError, OutriderError, UsageError

BF16 = 2
STATE_BYTES = 4  # recurrent states are kept in float32
_NOT_READ = ("visual", "vision", "mtp.", "audio")
_EMBEDDING = ("embed_tokens.weight", "token_embd.weight")
_HEAD = ("lm_head.weight", "output.weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterSizes:
    """A drafter that fills a block in one pass; the target's head is read besides.

    Attributes:
        name: as it is named.
        weights: bytes of a pass.
        kv: bytes of a token's keys and values.
        tokens: drafted by a block.
        config: keys of its config.json, as far as they are known.
    """

    name: str
    weights: float
    kv: float
    tokens: int
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A target.

    Attributes:
        weights: bytes that a pass reads, the head with them.
        head: of these the head's.
        embedding: bytes of the table, of which a pass reads a row; 0 where the head is the table.
        parameters: that a token is multiplied by.
        kv: bytes of a token's keys and values.
        state: bytes of a sequence's recurrent states, read once.
        layers: for what is spoken between devices.
        mtp: bytes of the built-in heads' layer; 0 without.
        hybrid: some layers are recurrent.
        kind: its ``model_type``; empty where it is not known.
        drafter: one that is published, where it is known.
        source: of these numbers.
    """

    weights: float
    head: float
    embedding: float
    parameters: float
    kv: float
    state: float
    layers: int
    mtp: float
    hybrid: bool
    kind: str
    drafter: DrafterSizes | None
    source: str

    @property
    def resident(self) -> float:
        """Bytes of weights in memory."""
        return self.weights + self.embedding


@cache
def _known() -> Mapping[str, Mapping[str, Any]]:
    text = files("outrider.planning").joinpath("data/models.toml").read_text("utf-8")
    return tomllib.loads(text)


def sizes(name: str) -> Sizes:
    """Return the sizes of a target: from its files where they are here, else by its name.

    Raises:
        UsageError: neither is there.
    """
    if name in _known():
        return _by_name(_known()[name])
    if is_hub_name(name):
        known = ", ".join(_known())
        raise UsageError(
            f"{name}: its files are not here and it is not listed ({known}); fetch it: outrider models pull."
        )
    return of_files(open_checkpoint(resolve(name)))


def _by_name(row: Mapping[str, Any]) -> Sizes:
    held = {key: value for key, value in row.items() if key != "drafter"}
    drafter = row.get("drafter")
    one = DrafterSizes(**{k: v for k, v in drafter.items() if k != "source"}) if drafter else None
    return Sizes(**held, parameters=row["weights"] / BF16, drafter=one)


def of_files(checkpoint: Checkpoint) -> Sizes:
    """Return the sizes of a target from its headers.

    Raises:
        CheckpointError: its config does not say how many layers and heads it has.
    """
    read = {n: t for n, t in checkpoint.tensors.items() if not any(part in n for part in _NOT_READ)}
    embedding = next((t for n, t in read.items() if n.endswith(_EMBEDDING)), None)
    head = next((t for n, t in read.items() if n.endswith(_HEAD)), None)
    tied = head is None
    rest = sum(t.nbytes for t in read.values()) - (embedding.nbytes if embedding else 0)
    heads = next((one.nbytes for one in (head, embedding) if one is not None), 0)
    config = _text(checkpoint.config)
    kinds = _kinds(config)
    return Sizes(
        weights=rest + (heads if tied else 0),
        head=heads,
        embedding=0.0 if tied or embedding is None else embedding.nbytes,
        parameters=_elements(read, None if tied else embedding),
        kv=_kv(config, sum("linear" not in kind for kind in kinds)),
        state=_state(config, sum("linear" in kind for kind in kinds)),
        layers=len(kinds),
        mtp=sum(t.nbytes for n, t in checkpoint.tensors.items() if n.startswith("mtp.")),
        hybrid=any("linear" in kind for kind in kinds),
        kind=str(checkpoint.config.get("model_type", "")),
        drafter=None,
        source="the headers of its files",
    )


def drafter_sizes(name: str) -> DrafterSizes | None:
    """Return the sizes of a block drafter from its headers; None where they are not here or it is of another kind."""
    from outrider.models.dflash.formats import examine

    try:
        found = examine(resolve(name))
    except OutriderError:
        return None
    if found.config is None:
        return None
    config = found.config
    kv = 2 * BF16 * config.num_layers * config.num_kv_heads * config.head_dim
    held = sum(t.nbytes for t in found.checkpoint.tensors.values())
    return DrafterSizes(name=name, weights=held, kv=kv, tokens=config.max_tokens, config=found.checkpoint.config)


def _text(config: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = config.get("text_config")
    return inner if isinstance(inner, Mapping) else config


def _elements(read: Mapping[str, TensorInfo], left_out: TensorInfo | None) -> float:
    total = sum(prod(t.shape) for t in read.values())
    return float(total - (prod(left_out.shape) if left_out else 0))


def _kinds(config: Mapping[str, Any]) -> list[str]:
    kinds, layers = config.get("layer_types"), config.get("num_hidden_layers")
    if isinstance(kinds, list):
        return [str(kind) for kind in kinds]
    if not isinstance(layers, int):
        raise CheckpointError(f"Expected num_hidden_layers in the target's config.json, found {layers!r}.")
    return ["full_attention"] * layers


def _kv(config: Mapping[str, Any], layers: int) -> float:
    heads = config.get("num_attention_heads")
    pairs = config.get("num_key_value_heads", heads)
    hidden = config.get("hidden_size")
    if not (isinstance(heads, int) and isinstance(pairs, int) and isinstance(hidden, int)):
        raise CheckpointError(
            "Expected num_attention_heads and hidden_size as whole numbers in the target's config.json."
        )
    size = config.get("head_dim") or hidden // heads
    return float(2 * BF16 * layers * pairs * size)


def _state(config: Mapping[str, Any], layers: int) -> float:
    keys = ("linear_num_value_heads", "linear_value_head_dim", "linear_key_head_dim")
    return float(STATE_BYTES * layers * prod(int(config.get(key, 0)) for key in keys))
