"""What the headers of a model's files say: its shape and the memory it needs. Reads no weights, needs no torch."""

from collections import Counter
from typing import TYPE_CHECKING

from outrider.errors import OutriderError
from outrider.models.config import DecoderConfig, Rope
from outrider.models.loading import check_tensors, decoder_config
from outrider.results import Record
from outrider.text.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from outrider.checkpoint import Checkpoint

ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
KV_TOKENS = 1000


class MemoryNeed(Record):
    """Bytes in one dtype: of the weights, and of the keys and values of 1000 tokens."""

    dtype: str
    weights: int
    kv_per_1000_tokens: int


class ModelFacts(Record):
    """One model: ``outrider models show --json``.

    Attributes:
        windows: how many attention layers have which sliding window; ``full`` where they see everything.
        recurrent_layers: layers that keep a state instead of keys and values.
        state: bytes of the matrices of these layers, in float32, whatever the length of a text.
        mtp_layers: multi-token prediction layers, which ``--drafter mtp`` runs.
        stored: bytes by stored type.
        problems: what keeps it from running; empty when tensors and config agree and the tokenizer reads.
    """

    name: str
    origin: str
    path: str
    family: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    context: int
    rope: str
    windows: dict[str, int]
    recurrent_layers: int
    state: int
    mtp_layers: int
    parameters: int
    stored: dict[str, int]
    memory: list[MemoryNeed]
    chat_template: bool
    tensors_agree: bool
    problems: list[str]


def facts(name: str, checkpoint: "Checkpoint") -> ModelFacts:
    """Collect the facts.

    Raises:
        CheckpointError: the config cannot be understood; all else becomes a problem in the record.
    """
    config = decoder_config(checkpoint.config)
    disagreement = _disagreement(config, checkpoint)
    template, tokenizer_problem = _chat_template(checkpoint)
    return ModelFacts(
        name=name,
        origin=checkpoint.source.origin,
        path=str(checkpoint.source.path),
        family=config.family,
        layers=config.num_layers,
        hidden=config.hidden_size,
        heads=config.num_heads,
        kv_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        intermediate=config.intermediate_size,
        vocabulary=config.vocab_size,
        context=config.max_positions,
        rope=rope_text(config.rope),
        windows=_windows(config),
        recurrent_layers=len(config.delta_layers),
        state=4 * config.state_elements,
        mtp_layers=config.mtp_layers,
        parameters=config.num_parameters,
        stored=stored_bytes(checkpoint),
        memory=memory_needs(config.num_parameters, config.kv_elements_per_token),
        chat_template=template,
        tensors_agree=disagreement is None,
        problems=[problem for problem in (disagreement, tokenizer_problem) if problem],
    )


def _disagreement(config: DecoderConfig, checkpoint: "Checkpoint") -> str | None:
    try:
        check_tensors(config, checkpoint)
    except OutriderError as error:
        return str(error)
    return None


def _chat_template(checkpoint: "Checkpoint") -> tuple[bool, str | None]:
    try:
        return load_tokenizer(checkpoint).chat_template is not None, None
    except OutriderError as error:
        return False, str(error)


def rope_text(rope: Rope) -> str:
    """Return a rotary embedding in words."""
    stretch = "" if rope.kind == "default" else f", {rope.kind} x{rope.options.get('factor', '?')}"
    return f"theta {rope.theta:g}{stretch}"


def _windows(config: DecoderConfig) -> dict[str, int]:
    windows = (config.windows[layer] for layer in config.attention_layers)
    return dict(Counter("full" if window is None else str(window) for window in windows))


def stored_bytes(checkpoint: "Checkpoint") -> dict[str, int]:
    """Return the bytes in the files by stored type."""
    stored: Counter[str] = Counter()
    for tensor in checkpoint.tensors.values():
        stored[tensor.dtype] += tensor.nbytes
    return dict(stored.most_common())


def memory_needs(parameters: int, kv_elements_per_token: int) -> list[MemoryNeed]:
    """Return what weights and cache take in each dtype."""
    return [
        MemoryNeed(
            dtype=dtype,
            weights=parameters * size,
            kv_per_1000_tokens=kv_elements_per_token * size * KV_TOKENS,
        )
        for dtype, size in ITEM_BYTES.items()
    ]
