"""From the words of a command line to a runner that is just long enough for its prompts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from outrider.commands.drafter_check import refuse_drafter
from outrider.commands.options import Drafting, Dtype, Loading
from outrider.commands.screen import Waiting, stderr, waiting
from outrider.errors import CheckpointError, UsageError

if TYPE_CHECKING:
    from outrider.runner import Runner

STEP = 64  # lengths are rounded up to it, so that runs of similar prompts share their shapes


def open_runner(
    model: str,
    *,
    drafter: str,
    drafting: Drafting,
    loading: Loading,
    weights: Literal["real", "dummy"] = "real",
) -> "Runner":
    """Load a model, saying so while it takes time; see ``sized`` for the length of its cache.

    Raises:
        OutriderError: whatever is wrong with the model.
    """
    draft = drafting.options()
    with waiting(stderr()) as telling:
        _announce(model, telling)
        from outrider.runner import load

        try:
            return load(
                model,
                drafter=drafter,
                draft_model=drafting.draft_model,
                draft=draft,
                dtype=loading.dtype.value,
                device=loading.device,
                max_len=STEP,
                weights=weights,
                report=telling.say,
            )
        except CheckpointError:
            refuse_drafter(model)
            raise


def _announce(model: str, telling: Waiting) -> None:
    """Spin, unless the hub's library will draw its own bars, with which a spinner would collide."""
    if is_here(model):
        telling.spin(f"Loading {model}")


def is_here(model: str) -> bool:
    """Say whether the model is a path, or a known name that the package, our cache or the hub's holds."""
    from outrider.checkpoint.cached import hub_models
    from outrider.checkpoint.known import KNOWN
    from outrider.checkpoint.package import cached_file
    from outrider.checkpoint.shipped import SHIPPED

    if model in SHIPPED:
        return True
    if model in KNOWN:
        known = KNOWN[model]
        return cached_file(known.package) is not None or any(found.name == known.hub for found in hub_models())
    return Path(model).expanduser().exists()


def sized(runner: "Runner", prompts: Sequence[Sequence[int]], *, max_tokens: int, max_len: int | None) -> "Runner":
    """Return a runner over the same target whose cache holds the longest of the prompts.

    Args:
        runner: a loaded model.
        prompts: token ids.
        max_tokens: new tokens of each.
        max_len: the length that was asked for; None for what the prompts need.

    Raises:
        UsageError: more than the model's context, or than ``max_len``.
    """
    context = runner.target.shape.max_positions
    if max_len is not None and max_len > context:
        raise UsageError(f"--max-len {max_len}: the model's context holds {context} tokens; lower it.")
    limit = max_len or context
    for index, prompt in enumerate(prompts, start=1):
        if len(prompt) + max_tokens > limit:
            which = "The prompt" if len(prompts) == 1 else f"Prompt {index}"
            raise UsageError(
                f"{which} has {len(prompt)} tokens and --max-tokens is {max_tokens}, together "
                f"{len(prompt) + max_tokens}; the context holds {limit}. "
                "Shorten the prompt or lower --max-tokens."
            )
    needed = max(map(len, prompts), default=0) + max_tokens
    return runner.resized(max_len or min(context, -(-needed // STEP) * STEP))


def dtype_name(loading: Loading, runner: "Runner") -> str:
    """Return what ``auto`` stood for."""
    if loading.dtype != Dtype.auto:
        return loading.dtype.value
    return "float32" if runner.target.device.type == "cpu" else "bfloat16"
