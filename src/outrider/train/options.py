"""What a user may say about training a drafter, checked when it is said. Free of torch."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from outrider.errors import UsageError

Loss = Literal["decay", "d-pace"]
Optimizer = Literal["adamw", "muon"]
Attention = Literal["auto", "flex", "dense"]
# May change between the pieces of one run: nothing of them moves a weight.
HARMLESS = (
    "evaluate_every", "evaluate_prompts", "evaluate_tokens", "checkpoint_every", "log_every", "keep", "keep_steps",
    "attention",
)  # fmt: skip
LEAST = {
    "rows": 1,
    "row_length": 8,
    "anchors": 1,
    "accumulation": 1,
    "evaluate_every": 0,
    "evaluate_prompts": 1,
    "evaluate_tokens": 1,
    "checkpoint_every": 1,
    "log_every": 1,
    "keep": 1,
    "seed": 0,
}
SHARES = ("warm_up", "distillation", "pace", "held_out")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """Settings of one run.

    Attributes:
        steps: optimizer steps of the whole run; or give ``tokens``.
        tokens: response tokens of the whole run, each pass over the data counted anew.
        lr: highest learning rate, after the warm-up; a cosine takes it to 0 (DFlash, arXiv 2602.06036: 6e-4).
        warm_up: share of the steps in which it rises.
        rows: packed rows that one process takes at once.
        row_length: tokens of a row; longer samples lose their end.
        anchors: blocks of a row.
        gamma: slot k weighs exp(-(k-1)/gamma); None takes 1 + 3/8 of the block, near the paper's 7, 5, 4 for blocks
            of 16, 10, 8.
        loss: ``decay`` weighs slots by gamma; ``d-pace`` by what they add to the expected accepted length
            (arXiv 2605.18810).
        pace: floor of the probabilities in D-PACE's products (alpha there).
        distillation: share of the loss that compares with the target's distribution instead of the text's token.
        optimizer: ``muon`` is for the matrices; vectors stay with AdamW.
        weight_decay: of matrices.
        clip: gradients longer than this are shortened to it.
        ema: what is exported and evaluated is a mean over steps with this decay.
        accumulation: batches of ``rows`` that one step gathers.
        bf16: compute in bfloat16, weights stay float32; None does so on a GPU.
        attention: ``flex`` compiles a kernel and wants a GPU, ``dense`` runs anywhere; auto chooses.
        seed: of weights, order and anchors.
        held_out: share of the prompts that training never sees.
        evaluate_every: steps between measurements in the real engine; 0 measures at the end alone.
        evaluate_prompts: held-out prompts of a measurement.
        evaluate_tokens: new tokens of each.
        checkpoint_every: steps between checkpoints.
        log_every: steps between lines of the log.
        keep: newest checkpoints that are kept.
        keep_steps: steps whose checkpoints are kept for good.
    """

    steps: int | None = None
    tokens: int | None = None
    lr: float = 6e-4
    warm_up: float = 0.04
    rows: int = 48
    row_length: int = 512
    anchors: int = 32
    gamma: float | None = None
    loss: Loss = "decay"
    pace: float = 0.5
    distillation: float = 0.0
    optimizer: Optimizer = "adamw"
    weight_decay: float = 0.01
    clip: float = 1.0
    ema: float = 0.999
    accumulation: int = 1
    bf16: bool | None = None
    attention: Attention = "auto"
    seed: int = 0
    held_out: float = 0.01
    evaluate_every: int = 500
    evaluate_prompts: int = 48
    evaluate_tokens: int = 128
    checkpoint_every: int = 500
    log_every: int = 20
    keep: int = 2
    keep_steps: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check ranges, then that the length of the run is said once."""
        for name, least in LEAST.items():
            value = getattr(self, name)
            _need(isinstance(value, int) and value >= least, name, value, f"a whole number of at least {least}")
        for name in SHARES:
            _need(0 <= getattr(self, name) <= 1, name, getattr(self, name), "a share from 0 to 1")
        for name in ("lr", "clip"):
            _need(0 < getattr(self, name) < float("inf"), name, getattr(self, name), "a number above 0")
        _need(0 <= self.weight_decay < float("inf"), "weight_decay", self.weight_decay, "a number of at least 0")
        _need(0 <= self.ema < 1, "ema", self.ema, "a number from 0 to below 1")
        _need(self.gamma is None or self.gamma > 0, "gamma", self.gamma, "a number above 0")
        _need(self.held_out < 1, "held_out", self.held_out, "a share below 1")
        if (self.steps is None) == (self.tokens is None):
            raise UsageError("The length of a training run: give either steps or tokens.")
        length = self.tokens if self.steps is None else self.steps
        _need(length is not None and length >= 1, "steps or tokens", length, "a whole number of at least 1")

    def gamma_of(self, block_size: int) -> float:
        """Return gamma for blocks of this size."""
        return 1 + 0.375 * block_size if self.gamma is None else self.gamma

    def lasting(self) -> dict[str, Any]:
        """Return the settings that must stay the same for a run to be continued."""
        return {name: value for name, value in asdict(self).items() if name not in HARMLESS}


def _need(ok: bool, name: str, value: Any, expected: str) -> None:  # noqa: FBT001 -- reads as a sentence
    if not ok:
        raise UsageError(f"Training setting {name}={value!r}: expected {expected}.")
