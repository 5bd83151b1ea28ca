"""A saved benchmark as Markdown, put between two markers of a page.

Reads results only: rendering again, or twice, changes nothing.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from outrider.errors import UsageError
from outrider.results import ArmResult, BenchResult, Ratio

_HEADER = (
    "arm",
    "tokens/s",
    "ratio",
    "decode tokens/s",
    "decode ratio",
    "step ms",
    "prefill ms",
    "tau",
    "load s",
    "peak MiB",
    "same tokens",
)


def render(result: BenchResult) -> str:
    """Tables of one benchmark: all prompts, and the ratios by category."""
    parts = [_table(_HEADER, (_row(arm, len(result.categories)) for arm in result.arms))]
    categories = list(dict.fromkeys(result.categories))
    if len(categories) > 1:
        rows = ([arm.name, *_by_category(arm, categories)] for arm in result.arms)
        parts += ["Ratio of whole runs by category:", _table(("arm", *categories), rows)]
    parts += [f"Not run: {arm} ({why})." for arm, why in result.skipped.items()]
    return "\n\n".join([*parts, _made_with(result)])


def write_between(path: Path, name: str, text: str) -> None:
    """Replace what stands between the markers of ``name``; a page without them gets both.

    Raises:
        UsageError: when only one of the two markers is there, or they stand in the wrong order.
    """
    start, end = f"<!-- bench:{name}:start -->", f"<!-- bench:{name}:end -->"
    page = path.read_text(encoding="utf-8") if path.exists() else ""
    block = f"{start}\n{text}\n{end}"
    if start not in page and end not in page:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{page.rstrip()}\n\n{block}\n".lstrip(), encoding="utf-8")
        return
    before, found_start, rest = page.partition(start)
    _, found_end, after = rest.partition(end)
    if not (found_start and found_end):
        raise UsageError(
            f"{path} needs {start} followed by {end}; found only one, or the wrong order. "
            "Remove it, and both are written anew."
        )
    path.write_text(before + block + after, encoding="utf-8")


def _row(arm: ArmResult, num_prompts: int) -> list[str]:
    return [
        arm.name,
        f"{arm.tokens_per_second:.1f}",
        _ratio(arm.ratios.get("all")),
        _number(arm.decode_tokens_per_second, ".1f"),
        _ratio(arm.decode_ratios.get("all")),
        _number(arm.median_step_seconds, ".1f", scale=1e3),
        f"{arm.median_prefill_seconds * 1e3:.0f}",
        _number(arm.acceptance_length, ".2f"),
        f"{arm.load_seconds:.1f}",
        _number(arm.peak_bytes, ".0f", scale=2**-20),
        f"{arm.same_tokens}/{num_prompts}",
    ]


def _by_category(arm: ArmResult, categories: Iterable[str]) -> list[str]:
    return [_ratio(arm.ratios.get(category)) for category in categories]


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return "-"
    # Without width there was one pair, or the base against itself: no interval is claimed.
    bounds = "" if ratio.low == ratio.high else f" ({ratio.low:.2f}-{ratio.high:.2f})"
    return f"{ratio.value:.2f}{bounds}"


def _number(value: float | None, form: str, *, scale: float = 1.0) -> str:
    return "-" if value is None else format(value * scale, form)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---", *("---:" for _ in header[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def _made_with(result: BenchResult) -> str:
    lengths = result.prompt_tokens
    return (
        f"{len(lengths)} prompts of {min(lengths)}-{max(lengths)} tokens, "
        f"{result.max_tokens} new, {result.repeats} repeats after {result.warmup} warm-up, "
        f"arms interleaved; intervals: 95 %. {result.provenance.line()}"
    )
