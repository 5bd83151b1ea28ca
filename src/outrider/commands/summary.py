"""What is said after a text: its speed, its rounds, and how well the drafts did."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from outrider.acceptance import Acceptance
from outrider.commands.curve import position_plot

if TYPE_CHECKING:
    from outrider.transcript import Completion


ENOUGH = 40  # draft tokens


def print_summary(console: Console, completion: "Completion", *, seed: int | None, repeats: bool = True) -> None:
    """Print the summary of one text.

    Args:
        console: where to.
        completion: the text.
        seed: of the draws; None for greedy decoding.
        repeats: whether the seed gives this text again.
    """
    for line in (_speed(completion), _ending(completion, _seed(seed, repeats=repeats)), _rounds(completion.acceptance)):
        console.print(Text(line, style="dim"), soft_wrap=True)
    if _never_accepted(completion):
        hint = "no draft was accepted: outrider inspect DRAFTER --target MODEL, or outrider repair, may tell why"
        console.print(Text(hint, style="dim"), soft_wrap=True)
    if completion.acceptance.num_accepted:
        line = "share of all rounds that accepted positions 1..k, and tokens accepted from depth k:"
        console.print(Text(line, style="dim"))
        console.print(position_plot(completion.acceptance.position_rates, completion.accepted_by_depth))


def _never_accepted(completion: "Completion") -> bool:
    """Whether enough was drafted to wonder; look-ups are silent where they find nothing."""
    acceptance = completion.acceptance
    return acceptance.num_drafted >= ENOUGH and not acceptance.num_accepted


def _speed(completion: "Completion") -> str:
    return (
        f"{len(completion.pieces)} tokens in {completion.decode_seconds:.2f} s: "
        f"{completion.tokens_per_second:.1f} tokens/s"
    )


def _ending(completion: "Completion", seed: str) -> str:
    return (
        f"prompt of {completion.prompt_tokens} tokens, read in {completion.prefill_seconds:.2f} s; "
        f"ended by {completion.finish_reason}{seed}"
    )


def _seed(seed: int | None, *, repeats: bool) -> str:
    if seed is None:
        return ""
    if repeats:
        return f", --seed {seed} repeats it"
    return (
        f"; --seed {seed} may give another text next time, since drafts are drawn and their number follows the clock "
        "(not so with --draft-tokens or --no-draft-sampling)"
    )


def _rounds(acceptance: Acceptance) -> str:
    if acceptance.rate is None:
        return f"{acceptance.num_rounds} rounds, nothing drafted"
    return f"{acceptance.num_rounds} rounds, acceptance length {_length(acceptance)}, {_rate(acceptance)}"


def _length(acceptance: Acceptance) -> str:
    found = acceptance.intervals().length
    if found is None:
        return "unknown"
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _rate(acceptance: Acceptance) -> str:
    share = 0.0 if acceptance.rate is None else acceptance.rate
    return f"acceptance rate {share:.1%} ({acceptance.num_accepted} of {acceptance.num_drafted} drafted)"
