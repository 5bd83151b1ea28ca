"""A verdict as Markdown, to be pasted into an issue. Words from outside are escaped."""

import re
from collections.abc import Iterator, Sequence

from outrider.doctor.evidence import Evidence
from outrider.doctor.verdict import Finding, Verdict, Way
from outrider.reports.words import Curve, clean, curves, effect, facts, given, missing, rate_rows, span, split, spoken

SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")


def markdown(verdict: Verdict, evidence: Evidence, others: Sequence[Curve] = ()) -> str:
    """Return the report."""
    return "\n".join(_lines(verdict, evidence, others)) + "\n"


def _lines(verdict: Verdict, evidence: Evidence, others: Sequence[Curve]) -> Iterator[str]:
    suspected, refuted = split(verdict)
    yield from ("# Speculative decoding, examined", "", f"**{plain(verdict.summary)}**", "")
    yield from _table(("examined", ""), [(name, plain(value)) for name, value in facts(evidence)])
    if suspected:
        yield from ("## Findings", "")
    for one in suspected:
        yield from _finding(one)
    out = [f"{one.code} {spoken(one)}: {plain('; '.join(one.against))}" for one in refuted]
    yield from _list("## Ruled out", out)
    yield from _curves(curves(evidence, others))
    yield from _list("## Not examined", [f"{plain(need)} ({codes})" for need, codes in missing(verdict.not_examined)])
    yield from _list("## Next", [plain(line) for line in verdict.next])
    yield from _list("## Notes", [plain(line) for line in verdict.notes])
    yield from _ways(verdict.options)
    yield from ("<details><summary>The evidence</summary>", "", *code(given(evidence), "json"), "</details>")


def _finding(one: Finding) -> Iterator[str]:
    costs = f", {effect(one)}" if effect(one) else ""
    yield f"### {one.code} {spoken(one)}: {one.standing}, {one.confidence:.0%}{costs}"
    yield ""
    for word, lines in (("for", one.evidence), ("against", one.against), ("do", one.remedy)):
        yield from (f"- {word}: {plain(line)}" for line in lines)
    yield ""


def _list(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield from (title, "", *(f"- {line}" for line in lines), "")


def _curves(found: Sequence[Curve]) -> Iterator[str]:
    if not found:
        return
    yield from ("## Accepted up to position", "")
    yield from _table(("position", *(plain(one.name) for one in found)), rate_rows(found))


def _ways(found: Sequence[Way]) -> Iterator[str]:
    if not found:
        return
    yield from ("## Ways forward", "")
    rows = [
        (plain(way.name), span(way.tokens_per_round), span(way.tokens_per_second), way.effort, plain(way.risk))
        for way in found
    ]
    yield from _table(("way", "tokens a round", "tokens/s", "effort", "risk"), rows)
    for way in found:
        if way.command:
            yield from (f"{plain(way.name)}:", "", *code(way.command, "sh"), "")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield from (f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows))
        yield ""


def plain(text: str) -> str:
    """Return one line that Markdown and HTML leave as it is."""
    return SPECIAL.sub(r"\\\1", " ".join(clean(text).split())).replace("&", "&amp;").replace("\\<", "&lt;")


def code(text: str, language: str) -> list[str]:
    """Return a block of code whose fence is longer than any within."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return [f"{fence}{language}", clean(text), fence]
