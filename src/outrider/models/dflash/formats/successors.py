"""The keys of what came after DFlash: DFlash2's convolution and selector, DSpark's heads, others that are not run."""

from collections.abc import Container

from outrider.models.dflash.config import Confidence, Convolution, Markov, Selector
from outrider.models.dflash.formats.keys import Keys, shown

MARKOV_KINDS = ("vanilla", "gated", "rnn")
DFLASH2_KEYS = ("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k")
DSPARK_KEYS = (
    *("markov_rank", "dspark_markov_rank", "markov_head_type"),
    *("enable_confidence_head", "confidence_head_with_markov"),
)
DOMINO_KEYS = ("emb_dim", "gru_hidden_dim", "pure_draft_prefix_len")
DFLY_KEYS = ("enable_hidden_correction", "hidden_correction_intermediate_size", "target_num_hidden_layers")
CONFIDENCE = "confidence_head.proj.weight"


def has_dflash2(keys: Keys) -> bool:
    """Say whether any of DFlash2's keys is there."""
    return any(keys.get(key) is not None for key in DFLASH2_KEYS)


def read_convolution(keys: Keys, default: Convolution | None = None) -> Convolution:
    """Return the convolution around the sublayers; without a default the config must say it."""
    return Convolution(
        taps=keys.integer("conv_kernel_size", None if default is None else default.taps),
        group=keys.integer("conv_group_size", None if default is None else default.group),
    )


def read_selector(keys: Keys, default: Selector | None = None) -> Selector:
    """Return the head that chooses among candidates; without a default the config must say it."""
    return Selector(
        rank=keys.integer("selector_rank", None if default is None else default.rank),
        top_k=keys.integer("selector_top_k", None if default is None else default.top_k),
    )


def read_markov(keys: Keys, *, rank: int | None, kind: str = "vanilla") -> Markov | None:
    """Return the head that follows the token before; None for a rank of 0.

    Args:
        keys: of the config.
        rank: where the config does not say; None if it must.
        kind: likewise.
    """
    found = keys.optional("markov_rank", "dspark_markov_rank", least=0)
    if found is None and rank is None:
        keys.say(
            "markov_rank", "expected the rank of the Markov head, found none; write it into the config.", fatal=True
        )
    size = rank if found is None else found
    if not size:
        return None
    name = keys.word("markov_head_type", MARKOV_KINDS, kind)
    return Markov(size, next(known for known in ("vanilla", "gated", "rnn") if known == name))


def read_confidence(keys: Keys, tensors: Container[str], markov: Markov | None) -> Confidence | None:
    """Return the head that foresees acceptance; where the config does not say, the files show whether there is one."""
    enabled = keys.flag("enable_confidence_head")
    if not (CONFIDENCE in tensors if enabled is None else enabled):
        return None
    joined = keys.flag("confidence_head_with_markov")
    if joined and markov is None:
        keys.say(
            "confidence_head_with_markov",
            "it is true and there is no Markov head (markov_rank 0); correct either.",
            fatal=True,
        )
    return Confidence(with_markov=markov is not None if joined is None else joined)


def refuse_others(keys: Keys) -> None:
    """Name the successors that are not run."""
    projector = keys.get("projector_type")
    if projector not in (None, "dflash", "dspark"):
        keys.say(
            "projector_type",
            f"{shown(projector)} drafters are not run; expected dspark, or none.",
            fatal=True,
        )
    if keys.get("enable_hidden_correction"):
        keys.say("enable_hidden_correction", "DFly drafters correct hidden states; that is not run.", fatal=True)
    if keys.flag("shift_label"):
        keys.say(
            "shift_label",
            "it is true: labels were shifted in training, and what that means for the anchor's slot is not documented; "
            "write sample_from_anchor instead (allowed, it is passed over).",
        )
