"""``outrider inspect``: what a drafter is, whether it fits a target, how engines run it. Headers only, no torch."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from outrider.checkpoint import open_checkpoint, resolve
from outrider.commands.drafter_check import check_draft_model, refuse_drafter
from outrider.commands.models import size_text
from outrider.commands.opening import is_here
from outrider.commands.screen import stderr, stdout, waiting
from outrider.models.dflash.formats import examine

if TYPE_CHECKING:
    from outrider.commands.drafter_facts import DrafterFacts, DrafterShape, LayerFacts, NamedTarget
    from outrider.commands.engines import EngineAdvice

REFUSED = 2


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for on the command line."""

    drafter: str
    target: str | None
    allow: Sequence[str]
    as_json: bool


def run(request: Request) -> int:
    """Print what the headers say; return the exit code, 2 where the drafter is refused or does not fit.

    Raises:
        OutriderError: no drafter or no target, or their files cannot be read.
    """
    from outrider.commands.drafter_facts import drafter_facts

    check_draft_model(request.drafter)
    with waiting(stderr()) as telling:
        if is_here(request.drafter):
            telling.spin(f"Looking at {request.drafter}")
        found = examine(resolve(request.drafter, report=telling.say))
        target = None if request.target is None else _target(request.target)
    facts = drafter_facts(request.drafter, found, allow=request.allow, target=target)
    if request.as_json:
        sys.stdout.write(facts.model_dump_json(indent=1) + "\n")
    else:
        _print(facts)
    return 0 if facts.runs else REFUSED


def _target(name: str) -> "NamedTarget":
    from outrider.commands.drafter_facts import named_target

    refuse_drafter(name)
    return named_target(name, open_checkpoint(resolve(name), weights=False).config)


def _print(facts: "DrafterFacts") -> None:
    console = stdout()
    _print_pairs(console, _lines(facts))
    if facts.shape is not None:
        _print_layers(console, facts.shape)
        _print_taps(console, facts.shape)
    for title, lines in (("From its card", facts.card), ("Notes", facts.notes)):
        _print_list(console, title, lines)
    _print_problems(console, facts)
    for engine in facts.engines:
        _print_engine(console, engine)


def _print_pairs(console: Console, pairs: list[tuple[str, str]]) -> None:
    grid = Table.grid(padding=(0, 2))
    for name, value in pairs:
        grid.add_row(Text(name, style="bold"), Text(value))
    console.print(grid)


def _lines(facts: "DrafterFacts") -> list[tuple[str, str]]:
    stored = ", ".join(f"{kind} {size_text(size)}" for kind, size in facts.stored.items())
    head = [
        ("drafter", facts.name),
        ("origin", facts.origin),
        ("path", facts.path),
        ("format", facts.format),
        ("stored", stored),
    ]
    return head if facts.shape is None else [*head, *_shape_lines(facts.shape)]


def _shape_lines(shape: "DrafterShape") -> list[tuple[str, str]]:
    needs = ", ".join(
        f"{need.dtype} {size_text(need.weights)} and {size_text(need.kv_per_1000_tokens)} a 1000 tokens"
        for need in shape.memory
    )
    anchor = "the anchor's slot predicts too" if shape.anchor_predicts else "the anchor's slot predicts nothing"
    return [
        ("kind", shape.kind),
        ("parameters", f"{shape.parameters / 1e6:,.1f} million"),
        ("memory", needs),
        ("hidden", f"{shape.hidden}, in the MLP {shape.intermediate}"),
        ("heads", f"{shape.heads} of {shape.head_dim}, keys and values {shape.kv_heads}"),
        ("vocabulary", str(shape.vocabulary)),
        ("context", f"{shape.context} tokens"),
        ("rope", shape.rope),
        ("block", f"{shape.block} slots, {shape.tokens} tokens a round; {anchor}"),
        ("masked slots", shape.mask),
        ("its own", ", ".join(shape.own) or "nothing; embeddings and head are the target's"),
        ("settings", ", ".join(shape.settings) or "the usual ones"),
    ]


def _print_layers(console: Console, shape: "DrafterShape") -> None:
    table = Table("layers", "context seen", "in the block")
    for numbers, layer in _runs(shape.layers):
        window = "all" if layer.window is None else f"window of {layer.window}"
        table.add_row(numbers, window, "only what is before" if layer.causal else "all slots")
    console.print(table)


def _runs(layers: "list[LayerFacts]") -> "list[tuple[str, LayerFacts]]":
    """Return neighbours that are alike as one, with their numbers."""
    runs: list[list[LayerFacts]] = []
    for layer in layers:
        alike = runs and (runs[-1][0].window, runs[-1][0].causal) == (layer.window, layer.causal)
        if alike:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return [(_span(run[0].layer, run[-1].layer), run[0]) for run in runs]


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _print_taps(console: Console, shape: "DrafterShape") -> None:
    depth = "" if shape.target_layers is None else f" of a target of {shape.target_layers} layers"
    table = Table(f"taps{depth}, as in", "ids")
    for convention, ids in shape.taps.items():
        table.add_row(convention, Text(", ".join(map(str, ids))))
    console.print(table)


def _print_list(console: Console, title: str, lines: Sequence[str]) -> None:
    if lines:
        console.print(Text(title, style="bold"))
    for line in lines:
        console.print(Text(f"  {line}"), soft_wrap=True)


def _print_problems(console: Console, facts: "DrafterFacts") -> None:
    for problem in facts.problems:
        how = "allowed" if problem.allowed else "problem"
        cure = f" [--allow {problem.key}]" if problem.can_be_allowed and not problem.allowed else ""
        style = "yellow" if problem.allowed else "bold red"
        console.print(Text(f"{how}: {problem.key}: {problem.message}{cure}", style=style), soft_wrap=True)
    console.print(Text(_verdict(facts), style="bold"), soft_wrap=True)


def _verdict(facts: "DrafterFacts") -> str:
    if not facts.runs:
        verdict = "It is not run here until the problems above are gone or allowed."
        return f"{verdict}{_measured(facts)}"
    if facts.target is None:
        return "It is run here. Give --target to see whether it fits one."
    return f"It is run here, and fits {facts.target}."


def _measured(facts: "DrafterFacts") -> str:
    """Name the way out where a config cannot be asked any more; a GGUF file's is not replaced."""
    own = any(problem.of == "drafter" and not problem.allowed for problem in facts.problems)
    if not own or facts.format == "gguf":
        return ""
    return f" Without its training config, try outrider repair {facts.name} --target {facts.target or 'MODEL'}."


def _print_engine(console: Console, engine: "EngineAdvice") -> None:
    verdicts = {True: "as trained", False: "NOT as trained", None: "not known whether as trained"}
    console.print()
    console.print(Text(f"{engine.engine}: {verdicts[engine.as_trained]}", style="bold"))
    if engine.command:
        console.print(Text(f"  {engine.command}"), soft_wrap=True)
    else:
        console.print(Text("  It cannot run this drafter."))
    needs = engine.needs if engine.command else ()
    for word, lines in (("needs", needs), ("differs", engine.differs), ("not known", engine.unknown)):
        for line in lines:
            console.print(Text(f"  {word}: {line}"), soft_wrap=True)
