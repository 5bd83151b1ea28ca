"""What the name of a logged number means: loss, accuracy, slot, acceptance length, of which data.

Names are those that SpecForge, speculators, ModelOpt, NeMo Automodel, TorchSpec, Transformers' Trainer and exports of
wandb and TensorBoard use; others are reported as not understood, never guessed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Place = Literal["train", "held-out", "engine", "any"]
What = Literal[
    "step", "tokens", "epoch", "loss", "accuracy", "slot", "length", "tau", "low", "high", "rate",
    "learning rate", "grad norm", "prompts",
]  # fmt: skip
TRAIN = ("train", "training")
HELD_OUT = ("val", "valid", "validation", "eval", "evaluation", "test", "held", "heldout", "holdout")
NAMES: dict[What, tuple[str, ...]] = {
    "step": ("step", "global_step", "trainer_global_step", "iteration", "iter", "it"),
    "tokens": (
        *("tokens", "tokens_seen", "total_tokens", "num_tokens", "num_input_tokens_seen", "response_tokens"),
        *("supervised_tokens", "consumed_tokens"),
    ),
    "epoch": ("epoch",),
    "loss": ("loss", "avg_loss", "mean_loss", "total_loss", "dflash_loss"),
    "accuracy": (
        *("acc", "accuracy", "full_acc", "avg_acc", "mean_acc", "mean_token_accuracy", "token_accuracy"),
        "dflash_accuracy",
    ),
    "length": ("eal", "accept_len", "estimated_training_ar", "estimated_ar", "simulated_acc_len"),
    "tau": ("tau", "validate_ar", "ar", "acceptance_length", "accept_length", "mean_acceptance_length"),
    "low": ("tau_low",),
    "high": ("tau_high",),
    "learning rate": ("lr", "learning_rate"),
    "grad norm": ("grad_norm",),
    "prompts": ("prompts", "num_prompts"),
}
BY_NAME = {name: what for what, names in NAMES.items() for name in names}
NUMBERED: tuple[tuple[str, What], ...] = (
    (r"(?:position|pos|slot)_(\d+)(?:_acc(?:uracy)?)?", "slot"),
    (r"(?:acc|accuracy|slot_accuracy)_(\d+)", "slot"),
    (r"(?:acc_)?parallel_0_step_(\d+)(?:_train_acc)?", "slot"),
    (r"(?:u|position_rates?|acceptance_rate_pos(?:ition)?)_(\d+)", "rate"),
)
TELLING = {  # names that one trainer alone logs
    "ModelOpt": "parallel_0_step_0",
    "speculators": "full_acc",
    "SpecForge": "simulated_acc_len",
    "NeMo Automodel": "base_accept_len",
}
WITHOUT_BONUS = ("simulated_acc_len",)  # counts accepted tokens only
ENGINE: tuple[What, ...] = ("tau", "low", "high", "rate", "prompts")
ANYWHERE: tuple[What, ...] = ("step", "tokens", "epoch", "learning rate", "grad norm")


@dataclass(frozen=True, slots=True)
class Column:
    """What a logged number is.

    Attributes:
        place: which network on which data; ``any`` for what belongs to the line as a whole.
        index: of a slot, as the name counts it.
        added: 1 where the number leaves the bonus token out.
    """

    what: What
    place: Place
    index: int | None = None
    added: float = 0.0


def understand(name: str) -> Column | None:
    """Return what the number of this name is; None if that is not known."""
    words = _words(name)
    place: Place | None = None
    while words and words[0] in (*TRAIN, *HELD_OUT) and len(words) > 1:
        place = place or ("train" if words[0] in TRAIN else "held-out")
        words = words[2:] if words[:2] == ["held", "out"] else words[1:]
    rest = "_".join(words)
    if rest in BY_NAME:
        what, index = BY_NAME[rest], None
    else:
        found = next(((what, match) for pattern, what in NUMBERED if (match := re.fullmatch(pattern, rest))), None)
        if found is None:
            return None
        what, index = found[0], int(found[1][1])
    if what == "tau" and place == "train":
        what = "length"  # nothing is decoded in a training step
    return Column(what, _place(what, place), index, 1.0 if rest in WITHOUT_BONUS else 0.0)


def format_of(names: Iterable[str]) -> str | None:
    """Return whose logs these names are from; None if they could be anybody's."""
    joined = " ".join(names).lower()
    return next((owner for owner, name in TELLING.items() if name in joined), None)


def _place(what: What, place: Place | None) -> Place:
    if what in ANYWHERE:
        return "any"
    return "engine" if what in ENGINE else place or "train"


def _words(name: str) -> list[str]:
    """Cut a name into words, without the name of the run that wandb puts before it and the marks behind it."""
    name = name.rpartition(" - ")[2].strip().lower()
    if name.endswith(("__min", "__max")):
        return []
    words = [word for word in re.split(r"[^a-z0-9]+", name) if word]
    if len(words) > 1 and words[-1] == "epoch" and words[0] in HELD_OUT:
        words.pop()  # means over an epoch's validation
    return words
