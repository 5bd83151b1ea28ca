"""What others measured of the same faults on other pairs, to stand beside what was measured here. Free of torch.

Acceptance lengths or first position rates as their sources give them: of other models, texts and engines, so of use
for the size of an effect and for nothing finer.
"""

from dataclasses import dataclass
from typing import Literal

from outrider.doctor.verdict import Cause


@dataclass(frozen=True, slots=True)
class Published:
    """One measurement.

    Attributes:
        fault: in words.
        unit: acceptance length, or the rate of the first position.
        healthy, faulty: with and without it.
        source: where it is told.
    """

    cause: Cause
    fault: str
    unit: Literal["tau", "u_1"]
    healthy: float
    faulty: float
    source: str

    @property
    def kept(self) -> float:
        """Share of accepted tokens (of the first position's hits) that the fault leaves."""
        base = 1.0 if self.unit == "tau" else 0.0
        return (self.faulty - base) / (self.healthy - base)


PUBLISHED = (
    Published("swa_ignored", "windows ignored, 6 K of context", "tau", 4.57, 3.27, "vllm#40898, #46104, #47745"),
    Published("swa_ignored", "windows ignored, 16 K of context", "tau", 7.76, 4.49, "vllm#40898, #46104, #47745"),
    Published(
        "swa_ignored", "windows ignored, Qwen3-30B-A3B, short context", "tau", 3.78, 3.70, "vllm#40898, #46104, #47745"
    ),
    Published("causal_flag", "trained both ways, run causal, MT-Bench", "tau", 4.03, 3.48, "SpecForge#427, vllm#43445"),
    Published(
        "causal_flag", "trained both ways, run causal, HumanEval", "tau", 6.17, 5.46, "SpecForge#427, vllm#43445"
    ),
    Published("layer_id_offset", "taps one block off, Qwen3.6-27B", "tau", 6.61, 5.56, "vllm#40727, #42704"),
    Published("context_kv_dropped", "no features, GSM8K, trained so", "tau", 6.53, 3.38, "arXiv 2602.06036"),
    Published("prefix_cache", "context keys of cached prompts not restored", "tau", 3.41, 1.02, "vllm#47930"),
    Published("dtype_or_quantisation", "fp8 context keys of the drafter", "tau", 2.70, 1.79, "tokenspeed"),
    Published("num_speculative_tokens", "block of 16 run with 8, MATH-500", "tau", 6.33, 5.09, "arXiv 2602.06036"),
    Published("num_speculative_tokens", "block of 8 run with 16, MATH-500", "tau", 5.21, 5.02, "arXiv 2602.06036"),
    Published("position_or_rope", "a quarter of each head rotated", "u_1", 0.87, 0.07, "speculators#613, #738"),
    Published("lm_head_or_embedding_not_shared", "head of another size", "tau", 5.28, 1.00, "vllm#46435, #47914"),
)


def published(cause: str) -> tuple[Published, ...]:
    """Return what is known of a cause."""
    return tuple(one for one in PUBLISHED if one.cause == cause)
