"""How much each cause costs, as published: the share of the acceptance length that is left, and where it moves.

A suspect whose known effect cannot give what is seen is put down by likelihood and named with its number.
"""

# ruff: noqa: PLR2004  a threshold stands in the sentence that it decides

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log, prod

from outrider.doctor.observation import Observation
from outrider.doctor.rules.signal import Signal
from outrider.doctor.verdict import Cause

SPREAD = 0.25
"""Of the log share, one standard deviation: texts differ by some tens of per cent in length."""
FLOOR = -4.0
"""No size alone rules out more than this, in log likelihood: a published size stems from few pairs."""
RULED_OUT = -2.5
"""From here on a suspect counts as refuted by its size."""


@dataclass(frozen=True)
class Size:
    """A published size.

    Attributes:
        share: Acceptance length with the fault over without, lowest and highest published.
        says: The largest published case, in numbers.
        source: Where it was published.
        moves: How it goes with context, concurrency, draft length and temperature.
    """

    share: tuple[float, float]
    says: str
    source: str
    moves: str


SIZES: Mapping[Cause, Size] = {
    "layer_id_offset": Size(
        (0.84, 0.98), "3.95 to 4.13 on an 8B target, 5.56 to 6.61 on a 27B one",
        "vllm-project/vllm#40727; atlas#394", "the same at every position, context, load and temperature",
    ),
    "swa_ignored": Size(
        (0.55, 0.98), "5.14 to 6.45 on mixed text; 3.27 to 4.57 at 6k tokens, 4.49 to 7.76 at 16k",
        "vllm-project/vllm#40898, #46104; Luce-Org/lucebox#129", "nothing within the window, grows past it; tail first",
    ),
    "causal_flag": Size(
        (0.78, 0.97), "3.48 instead of 4.11 on chat, 5.46 instead of 6.2 on code",
        "vllm-project/vllm#43445", "first position unhurt, later ones steeper; no move with context or load",
    ),
    "sampling": Size(
        (0.45, 1.0), "6.49 at temperature 0, 5.48 at 1 (a DFlash drafter, 8B target)",
        "arXiv 2602.06036, table 1", "falls smoothly with temperature; less on code than on prose",
    ),
    "chat_template_or_thinking": Size(
        (0.35, 0.95), "a rate of 25 % with thinking, 60 % without",
        "z-lab/dflash#133", "every position; no move with context or load",
    ),
    "num_speculative_tokens": Size(
        (0.35, 1.05), "a rate of 4.4 % at 7 drafted, 34.7 % at the 5 that were trained",
        "vllm-project/vllm#41834; arXiv 2602.06036, table 8", "tail only, or all positions past the trained block",
    ),
    "batch_or_model_size_no_gain": Size(
        (0.93, 1.1), "acceptance untouched, 0.8 to 1.1 times the speed",
        "vllm-project/vllm#39680", "worse with concurrency and context",
    ),
    "prefix_cache": Size(
        (0.9, 1.05), "acceptance untouched, every prompt prefilled anew",
        "vllm-project/vllm#54163", "time to first token grows with the prompt",
    ),
    "context_kv_dropped": Size(
        (0.15, 0.75), "3.41 without cached prefixes, 1.02 with",
        "vllm-project/vllm#47930", "falls with the share of context lost",
    ),
    "wrong_layer_ids": Size(
        (0.15, 0.75), "1.04 with guessed taps; a drafter that never sees its target keeps 3.4 of 6.5",
        "vllm-project/vllm#50170; arXiv 2602.06036, table 10", "every position, at any context and load",
    ),
    "mask_token": Size(
        (0.16, 0.75), "1.42 instead of 6.30", "sgl-project/sglang#27924", "every position; the first suffers least",
    ),
    "undertrained_drafter": Size(
        (0.15, 0.92), "1.47 after 5 k samples, 3.55 after 12 epochs of 142 k steps, 5.97 for the published one",
        "speculators documentation; sgl-project/SpecForge#469", "every position, the later the more; text it saw helps",
    ),
    "target_mismatch": Size(
        (0.2, 0.97), "3.76 with the drafter of the version before, 5.12 with its own",
        "Luce-Org/lucebox#94", "every position; depends on the domain",
    ),
    "position_or_rope": Size(
        (0.15, 0.85), "1.04 with a quarter of the head rotated instead of all",
        "vllm-project/speculators#613", "all of it from the start, or from a length on",
    ),
    "dtype_or_quantisation": Size(
        (0.15, 0.97), "fp8 keys: 4.15 instead of 4.63; fp16 overflow or unrotated q8 keys: nothing accepted",
        "vllm-project/vllm#55557; ggml-org/llama.cpp#25725", "rounding costs evenly, overflow all at once",
    ),
    "draft_weights_missing": Size(
        (0.1, 0.45), "exactly 1.00", "sgl-project/sglang#35797", "from the first request, at every load",
    ),
    "lm_head_or_embedding_not_shared": Size(
        (0.1, 0.5), "a rate of 1.7 % instead of 25 %", "vllm-project/vllm-ascend#11374", "from the first request",
    ),
    "tokenizer_or_vocab_mismatch": Size(
        (0.1, 0.6), "1 to 2 % accepted without the map of a reduced vocabulary",
        "NVIDIA-NeMo/Automodel#2447", "from the first request",
    ),
}  # fmt: skip


def sized(cause: Cause, o: Observation) -> Signal | None:
    """What the size of the loss says of a cause; None without an expectation or without a published size."""
    size, share = SIZES.get(cause), o.share
    if size is None or share is None or share <= 0:
        return None
    low, high = size.share
    if low <= share <= high:
        return None
    gap = log(low / share) if share < low else log(share / high)
    weight = max(FLOOR, -0.5 * (gap / SPREAD) ** 2)
    if weight > -0.3:
        return None
    word = "small" if share < low else "large"
    text = (
        f"too {word}: it leaves {low:.0%} to {high:.0%} of the length ({size.says}; {size.source}), {share:.0%} is seen"
    )
    return Signal(text, weight, "size")


def together(causes: Iterable[Cause], o: Observation) -> float | None:
    """The least share of the length that several causes leave at once, were their losses to multiply."""
    sizes = [SIZES[cause].share[0] for cause in causes if cause in SIZES and (o.share or 1) < SIZES[cause].share[0]]
    return prod(sizes) if len(sizes) > 1 else None


def tokens(cause: Cause, o: Observation) -> tuple[float, float] | None:
    """What the cause costs in tokens a round, lowest and highest, against the expected length."""
    size = SIZES.get(cause)
    if size is None or o.expected is None:
        return None
    low, high = size.share
    return (round(o.expected * (low - 1), 2), round(min(0.0, o.expected * (high - 1)), 2))
