"""What the names and shapes of a drafter's tensors say of it. Free of torch.

They cannot say: which taps and in which order, mask token, windows and causality, block size, rotary base, epsilon of
the norms, scales, whether the anchor predicts. Names are those of z-lab's files.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from outrider.errors import CheckpointError, UnsupportedError
from outrider.models.config import DecoderConfig
from outrider.models.dflash.config import Confidence, Convolution, Markov

Shapes = Mapping[str, tuple[int, ...]]
_LAYER = re.compile(r"layers\.(\d+)\.")
# What training leaves in files and no drafter reads: the target's head and norm, a look-up that d2t implies.
_IGNORED = ("t2d", "verifier_lm_head.weight", "verifier_norm.weight", "rotary_emb.inv_freq")
_ANCHOR = "fc.weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inferred:
    """What the tensors determine; words as in ``DFlashConfig``.

    Attributes:
        num_taps: blocks of the target that feed it, by the width of ``fc``.
        selector_rank: of DFlash2's codebooks; how many candidates it chooses among is not in them.
    """

    kind: Literal["dflash", "dflash2", "dspark"]
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    num_taps: int
    target_hidden_size: int
    vocab_size: int
    draft_vocab_size: int | None
    own_embedding: bool
    own_head: bool
    biases: bool
    sinks: bool
    convolution: Convolution | None
    selector_rank: int | None
    markov: Markov | None
    confidence: Confidence | None


def infer(shapes: Shapes, target: DecoderConfig) -> Inferred:
    """Read the sizes and variants off the shapes.

    Args:
        shapes: of all tensors, by their z-lab names.
        target: what it drafts for; the width of ``fc`` is counted in its hidden states.

    Raises:
        CheckpointError: a tensor is missing or has a shape that cannot be, or the target is another one.
        UnsupportedError: tensors that no kind of drafter known here has.
    """
    found = _Shapes(shapes)
    hidden, fed = found.of(_ANCHOR)
    head_dim = found.of("layers.0.self_attn.q_norm.weight", axes=1)[0]
    draft_words = found.rows("lm_head.weight")
    markov, confidence = _markov(found), _confidence(found, hidden)
    words = found.rows("embed_tokens.weight") or target.vocab_size
    convolution, selector_rank = _convolution(found, hidden), _selector_rank(found)
    return Inferred(
        kind="dflash2" if convolution or selector_rank else "dspark" if markov or confidence else "dflash",
        num_layers=_num_layers(shapes),
        hidden_size=hidden,
        num_heads=_heads(found, "q", head_dim),
        num_kv_heads=_heads(found, "k", head_dim),
        head_dim=head_dim,
        intermediate_size=found.of("layers.0.mlp.gate_proj.weight")[0],
        num_taps=_num_taps(fed, target),
        target_hidden_size=target.hidden_size,
        vocab_size=words,
        draft_vocab_size=draft_words if "d2t" in shapes else None,
        own_embedding="embed_tokens.weight" in shapes,
        own_head=draft_words is not None,
        biases="layers.0.self_attn.q_proj.bias" in shapes,
        sinks="layers.0.self_attn.sinks" in shapes,
        convolution=convolution,
        selector_rank=selector_rank,
        markov=markov,
        confidence=confidence,
    )


def check_all_have_a_place(found: Shapes, wanted: Shapes) -> None:
    """Compare the tensors that are there with those that a config calls for.

    Raises:
        CheckpointError: a tensor is missing or has another shape than the rest implies.
        UnsupportedError: a tensor has no place.
    """
    for name, shape in wanted.items():
        if name not in found:
            raise CheckpointError(f"Tensor {name} is missing, which the others call for; fetch the drafter again.")
        if tuple(found[name]) != shape:
            raise CheckpointError(
                f"Tensor {name} has shape {tuple(found[name])}, the others imply {shape}: files of different drafters?"
            )
    extra = [name for name in found if name not in wanted and not name.endswith(_IGNORED)]
    if extra:
        raise UnsupportedError(
            f"{len(extra)} tensors have no place in a DFlash, DFlash2 or DSpark drafter, first {extra[0]}: "
            "another method, or a variant that is not known here."
        )


class _Shapes:
    """Shapes by name, and complaints where they are not as they must be."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes

    def of(self, name: str, *, axes: int = 2) -> tuple[int, ...]:
        shape = self._shapes.get(name)
        if shape is None:
            raise CheckpointError(
                f"There is no tensor {name}, which every DFlash drafter has; found are "
                f"{', '.join(sorted(self._shapes)[:3]) or 'none'}: another kind of model?"
            )
        if len(shape) != axes or not prod(shape):
            raise CheckpointError(f"Tensor {name} has shape {tuple(shape)}; expected {axes} axes, none of them empty.")
        return tuple(shape)

    def rows(self, name: str) -> int | None:
        return self.of(name)[0] if name in self._shapes else None

    def has(self, name: str) -> bool:
        return name in self._shapes


def _num_layers(shapes: Shapes) -> int:
    return 1 + max(int(match[1]) for match in map(_LAYER.match, shapes) if match)


def _heads(found: _Shapes, part: str, head_dim: int) -> int:
    name = f"layers.0.self_attn.{part}_proj.weight"
    rows = found.of(name)[0]
    if rows % head_dim:
        raise CheckpointError(f"Tensor {name} has {rows} rows, which are no whole number of heads of {head_dim}.")
    return rows // head_dim


def _num_taps(fed: int, target: DecoderConfig) -> int:
    taps, rest = divmod(fed, target.hidden_size)
    if rest or not taps:
        raise CheckpointError(
            f"Tensor {_ANCHOR} reads {fed} numbers a token, which are no whole number of the target's hidden states of "
            f"{target.hidden_size}: the drafter is for another target."
        )
    if taps > target.num_layers:
        raise CheckpointError(
            f"Tensor {_ANCHOR} reads {taps} hidden states a token, the target has {target.num_layers} blocks: "
            "the drafter is for another target."
        )
    return taps


def _convolution(found: _Shapes, hidden: int) -> Convolution | None:
    base, projection = (f"layers.0.attention_conv.{part}" for part in ("base_kernel", "kernel_projection.weight"))
    if not found.has(base):
        return None
    taps, rows = found.of(base, axes=3)[1], found.of(projection)[0]
    coefficients = 2 * taps * hidden
    if coefficients % rows:
        raise CheckpointError(f"Tensor {projection} has {rows} rows; expected a divisor of {coefficients}.")
    return Convolution(taps, coefficients // rows)


def _selector_rank(found: _Shapes) -> int | None:
    name = "candidate_selector.predecessor_codebook"
    return found.of(name)[1] if found.has(name) else None


def _markov(found: _Shapes) -> Markov | None:
    name = "markov_head.markov_w1.weight"
    if not found.has(name):
        return None
    gated, joint = (found.has(f"markov_head.{part}_proj.weight") for part in ("gate", "joint"))
    return Markov(found.of(name)[1], "gated" if gated else "rnn" if joint else "vanilla")


def _confidence(found: _Shapes, hidden: int) -> Confidence | None:
    name = "confidence_head.proj.weight"
    return Confidence(with_markov=found.of(name)[1] > hidden) if found.has(name) else None
