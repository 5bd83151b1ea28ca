"""A trace as people read it: acceptance, nodes by depth against what was foreseen, a drawn round."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from outrider.commands.curve import position_plot
from outrider.commands.opening import is_here
from outrider.commands.trace_tree import TokenText, draw, heading
from outrider.errors import OutriderError
from outrider.traces.format import TraceHeader, TraceRow
from outrider.traces.summary import DepthSummary, DrafterSummary

_LEGEND = "nodes by depth; what drafter and target foresaw, and what came true:"


def print_summary(console: Console, header: TraceHeader, drafters: list[DrafterSummary]) -> None:
    """Print where the trace comes from, and its numbers, drafter by drafter."""
    console.print(Text(_origin(header), style="dim"), soft_wrap=True)
    if not drafters:
        console.print(Text("The trace holds no rounds."))
    for found in drafters:
        _print_drafter(console, found)


def _origin(header: TraceHeader) -> str:
    drafted = "" if header.draft_model is None else f", draft model {header.draft_model}"
    return f"{header.model} in {header.dtype}{drafted}. {header.provenance.line()}"


def _print_drafter(console: Console, found: DrafterSummary) -> None:
    console.print(Text(f"\n{found.drafter}", style="bold"))
    length = "unknown" if found.acceptance_length is None else f"{found.acceptance_length:.2f}"
    rate = "nothing drafted" if found.acceptance_rate is None else f"acceptance rate {found.acceptance_rate:.1%}"
    prompts = "1 prompt" if found.prompts == 1 else f"{found.prompts} prompts"
    console.print(Text(f"{found.rounds} rounds of {prompts}, acceptance length {length}, {rate}"), soft_wrap=True)
    if any(found.position_rates):
        console.print(Text("share of all rounds that accepted positions 1..k:", style="dim"))
        console.print(position_plot(found.position_rates))
    if found.depths:
        console.print(Text(_LEGEND, style="dim"))
        console.print(_depths(found.depths))
    if found.left_spine is not None:
        console.print(Text(f"{found.left_spine:.1%} of the accepted paths left the spine"), soft_wrap=True)


def _depths(depths: list[DepthSummary]) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for name in ("depth", "offered", "reached", "accepted", "drafter", "came true", "target", "came true"):
        table.add_column(name, justify="right")
    for found in depths:
        chances = (found.drafter, found.frequency, found.target, found.conditional)
        counts = (found.depth, found.offered, found.reached, found.accepted)
        table.add_row(*map(str, counts), *("-" if chance is None else f"{chance:.3f}" for chance in chances))
    return table


def print_round(console: Console, row: TraceRow, token_text: TokenText) -> None:
    """Print a round: a line about it, and its tree."""
    console.print()
    console.print(heading(row), soft_wrap=True)
    console.print(draw(row, token_text))


def token_text_of(model: str) -> TokenText:
    """Return what writes a token: as text where the model is at hand, else as its id."""
    from outrider.checkpoint import open_checkpoint, resolve
    from outrider.checkpoint.cached import hub_models
    from outrider.text.tokenizer import load_tokenizer

    cached = (str(found.path) for found in hub_models() if found.name == model)
    path = model if is_here(model) else next(cached, None)
    if path is None:
        return str
    try:
        tokenizer = load_tokenizer(open_checkpoint(resolve(path), weights=False))
    except (OutriderError, ImportError):  # gone, changed, or no tokenizers here: ids say enough
        return str

    def told(token: int) -> str:
        text = tokenizer.token_text(token)
        known = tokenizer.piece(token) is not None and "\ufffd" not in text  # else part of a character
        return repr(text) if known else str(token)

    return told
