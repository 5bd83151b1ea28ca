"""A round as a drawn tree: what was proposed, what drafter and target gave it, what was accepted."""

from collections.abc import Callable, Iterator

from rich.text import Text
from rich.tree import Tree

from outrider.commands.streaming import shade
from outrider.traces.format import TraceRow

TokenText = Callable[[int], str]
DECIDED = "bold"


def heading(row: TraceRow) -> Text:
    """Return the line over the tree."""
    how = ", drawn from the drafter's law" if row.sampled else ""
    line = (
        f"{row.drafter}, prompt {row.prompt + 1}, round {row.round} at position {row.position}: "
        f"{len(row.tokens)} nodes{how}, {len(row.path)} accepted, {row.seconds * 1000:.1f} ms"
    )
    return Text(line, style="bold")


def draw(row: TraceRow, token_text: TokenText) -> Tree:
    """Return the tree of a round, the accepted path in the colours of a streamed text."""
    depths = row.depths
    accepted = {0, *row.path}
    branches = [Tree(Text(f"{token_text(row.anchor)} (anchor)"), guide_style="dim")]
    for node, parent in enumerate(row.parents, start=1):
        label = _label(row, node, token_text, shade(depths[node]) if node in accepted else None)
        branches.append(branches[parent].add(label))
    branches[row.path[-1] if row.path else 0].add(_ending(row, token_text))
    return branches[0]


def _label(row: TraceRow, node: int, token_text: TokenText, style: str | None) -> Text:
    label = Text(token_text(row.tokens[node - 1]), style=style or "")
    told = [f"{who} {chance:.3g}" for who, chance in _chances(row, node) if chance is not None]
    if style is not None:
        told.append("accepted")
    return label.append(f"  {', '.join(told)}", style="dim")


def _chances(row: TraceRow, node: int) -> Iterator[tuple[str, float | None]]:
    """What target and drafter gave the node after its parent, and what the drafter gave its whole path."""
    yield "target", row.target[node - 1]
    if row.reach is None:
        return
    parent = row.parents[node - 1]
    reach, before = row.reach[node - 1], row.reach[parent - 1] if parent else 1.0
    yield "drafter", reach / before if reach is not None and before else None
    yield "reach", reach


def _ending(row: TraceRow, token_text: TokenText) -> Text:
    """What stands below the accepted path: the bonus token, or that the text had ended before it."""
    if row.kept <= len(row.path):
        return Text(f"the text ended with token {row.kept} of this path", style="dim")
    label = Text(token_text(row.bonus), style=DECIDED)
    return label.append("  decided by the target", style="dim")
