"""A verdict as one page that can be sent to somebody: no script, no request to anywhere, light and dark."""

from collections.abc import Sequence

from outrider import __version__
from outrider.doctor.evidence import Evidence
from outrider.doctor.verdict import Finding, Verdict, Way
from outrider.reports.elements import Markup, element, joined
from outrider.reports.plots import picture
from outrider.reports.words import Curve, curves, effect, facts, given, missing, rate_rows, span, split, spoken

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --paper: #fff; --line: #d0d7de; --soft: #59636e; --panel: #f6f8fa;
 --confirmed: #b42318; --likely: #8a5300; --possible: #0b5cad; --c0: #0b5cad;
 --c1: #1a7f37; --c2: #8a5300; --c3: #7a3ea8 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --line: #3d444d; --soft: #9198a1;
 --panel: #161b22; --confirmed: #ff9a8f; --likely: #f0b72f; --possible: #79b8ff; --c0: #79b8ff; --c1: #56d364;
 --c2: #f0b72f; --c3: #d2a8ff } }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
 color: var(--ink); background: var(--paper) }
h1 { font-size: 1.35rem } h2 { font-size: 1.15rem; margin-top: 2rem } h3 { font-size: 1rem; margin: 0 0 .4rem }
section.finding { border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem; margin: .8rem 0 }
.confirmed { color: var(--confirmed) } .likely { color: var(--likely) } .possible { color: var(--possible) }
.soft, footer { color: var(--soft) }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100% }
caption { text-align: left; color: var(--soft) }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top }
pre { background: var(--panel); padding: .7rem; overflow-x: auto; border-radius: 6px; white-space: pre-wrap }
meter { width: 9rem; vertical-align: middle }
svg { width: 100%; height: auto } svg text { fill: var(--soft); font-size: 12px } .grid { stroke: var(--line) }
.curve { fill: none; stroke-width: 2 } circle.curve { fill: var(--paper) } .band { fill: var(--c0); opacity: .15 }
.c0 { stroke: var(--c0) } .c1 { stroke: var(--c1) } .c2 { stroke: var(--c2) } .c3 { stroke: var(--c3) }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(verdict: Verdict, evidence: Evidence, others: Sequence[Curve] = ()) -> str:
    """Return the page."""
    title = "Speculative decoding, examined"
    head = joined(
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    body = element("body", _main(verdict, evidence, others), element("footer", f"outrider {__version__}"))
    return f"<!doctype html>\n{element('html', element('head', head), body, lang='en')}\n"


def _main(verdict: Verdict, evidence: Evidence, others: Sequence[Curve]) -> Markup:
    suspected, refuted = split(verdict)
    found = curves(evidence, others)
    rows = [(f"{one.code} {spoken(one)}", "; ".join(one.against)) for one in refuted]
    return element(
        "main",
        element("h1", verdict.summary),
        _table("What was examined", ("", ""), facts(evidence)),
        *([element("h2", "Findings")] if suspected else []),
        *(_finding(one) for one in suspected),
        *_section("Ruled out", rows and _table("", ("cause", "why"), rows)),
        *_section("Accepted up to position", found and _curves(found)),
        *_section("Ways forward", verdict.options and _ways(verdict.options)),
        *_section("Next", verdict.next and _list(verdict.next)),
        *_section(
            "Not examined",
            verdict.not_examined and _table("", ("needs", "rules"), missing(verdict.not_examined)),
        ),
        *_section("Notes", verdict.notes and _list(verdict.notes)),
        element("details", element("summary", "The evidence"), element("pre", given(evidence))),
    )


def _section(title: str, content: Markup | Sequence[object]) -> list[Markup]:
    return [element("h2", title), content] if isinstance(content, Markup) else []


def _finding(one: Finding) -> Markup:
    costs = effect(one)
    percent = f"{one.confidence:.0%}"
    name = element("strong", one.standing, class_=one.standing)
    standing = element("p", name, " ", _meter(one, percent), f" {percent}.")
    lists = [
        joined(element("h4", word), _list(lines))
        for word, lines in (("For it", one.evidence), ("Against it", one.against), ("What to do", one.remedy))
        if lines
    ]
    return element(
        "section",
        element("h3", f"{one.code} {spoken(one)}"),
        standing,
        *([element("p", f"{costs[0].upper()}{costs[1:]}.")] if costs else []),
        *lists,
        class_="finding",
    )


def _meter(one: Finding, percent: str) -> Markup:
    return element("meter", percent, min=0, max=1, value=one.confidence, aria_label=f"probability of {spoken(one)}")


def _list(lines: Sequence[str]) -> Markup:
    return element("ul", *(element("li", line) for line in lines))


def _curves(found: Sequence[Curve]) -> Markup:
    table = _table("", ("position", *(one.name for one in found)), rate_rows(found))
    return joined(picture(found), element("details", element("summary", "As numbers"), table))


def _ways(found: Sequence[Way]) -> Markup:
    rows = [
        (
            joined(way.name, element("pre", way.command)) if way.command else way.name,
            span(way.tokens_per_round),
            span(way.tokens_per_second),
            way.effort,
            way.risk,
        )
        for way in found
    ]
    return _table(
        "Numbers stand where the evidence allows.", ("way", "tokens a round", "tokens/s", "effort", "risk"), rows
    )


def _table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    top = element("tr", *(element("th", name, scope="col") for name in heads)) if any(heads) else ""
    lines = [
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in cells))
        for first, *cells in rows
    ]
    label = element("caption", caption) if caption else Markup("")
    table = element("table", label, *([element("thead", top)] if top else []), element("tbody", *lines))
    return element("div", table, class_="wide", tabindex=0)
