"""Every report says the whole verdict, and nothing from outside becomes markup."""

import io
import json
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from outrider.doctor.evidence import Evidence
from outrider.doctor.verdict import Effect, Finding, NotExamined, Verdict, Way
from outrider.reports.console import bar, print_verdict
from outrider.reports.html import page
from outrider.reports.markdown import markdown
from outrider.reports.words import Curve, clean, curves, effect

VOID = {"meta", "br", "hr", "img", "link", "input"}


def verdict(text="words"):
    likely = Finding(
        code="OR205", cause="swa_ignored", standing="likely", confidence=0.62,
        effect=Effect(tokens_per_round=(-1.5, -0.5)),
        evidence=[f"for {text}"], against=[f"against {text}"], remedy=[f"remedy {text}"],
    )  # fmt: skip
    refuted = Finding(
        code="OR201", cause="layer_id_offset", standing="refuted", confidence=0.01, against=[f"size {text}"]
    )
    return Verdict(
        summary=f"summary {text}",
        findings=[likely, refuted],
        not_examined=[NotExamined(code=code, needs=f"needs {text}") for code in ("OR501", "OR502")],
        next=[f"next {text}"],
        options=[
            Way(
                name=f"way {text}", tokens_per_round=(2.0, 3.0), tokens_per_second=(50.0, 50.0), effort="hours",
                risk=f"risk {text}", command=f"run {text}",
            )
        ],
    )  # fmt: skip


def evidence(text="words"):
    return Evidence.model_validate(
        {
            "schema": 1,
            "method": "dflash",
            "target": {"name": f"target {text}"},
            "notes": text,
            "counters": {"accepted_per_position": [0.8, 0.5, 0.2], "rounds": 400, "tokens_per_second": 61.0},
            "series": [{"when": {text or "a": 1}, "counters": {"accepted_per_position": [0.9, 0.7]}}],
        }
    )


def terminal(found, about, width=100):
    written = io.StringIO()
    print_verdict(Console(file=written, width=width, highlight=False, markup=False, emoji=False), found, about)
    return written.getvalue()


class Reader(HTMLParser):
    """Collects elements, attributes and text, and checks that elements nest."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


PARTS = [
    "summary words", "OR205 swa ignored", "likely", "62%", "0.50 to 1.50 tokens a round", "for words", "against words",
    "remedy words", "OR201 layer id offset", "size words", "needs words", "OR501, OR502", "next words", "way words",
    "2.00 to 3.00", "50.00", "hours", "risk words", "run words", "target words", "0.800", "0.200", "2.50",
]  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_every_report_says_all_of_it(part):
    assert part in terminal(verdict(), evidence(), width=400)
    assert part in markdown(verdict(), evidence())
    assert part in " ".join(read(page(verdict(), evidence())).text)


def test_a_bare_verdict_is_a_whole_report():
    bare, nothing = Verdict(summary="nothing found"), Evidence(schema=1)
    assert terminal(bare, nothing).strip() == "nothing found"
    assert "nothing found" in markdown(bare, nothing)
    reader = read(page(bare, nothing))
    assert "svg" not in reader.tags
    assert "Findings" not in "".join(reader.text)


ATTACKS = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</style><b>", "</pre></details><iframe>",
    "' onload='x",    "<!-- ", "]]>", "&lt;b&gt;", "\x1b[31mred\x1b[0m", "javascript:alert(1)", "```\n# head",
]  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_from_outside_becomes_markup(attack):
    plain, attacked = read(page(verdict(), evidence())), read(page(verdict(attack), evidence(attack)))
    assert attacked.tags == plain.tags
    assert [name for name, _ in attacked.attributes] == [name for name, _ in plain.attributes]
    assert clean(attack) in "".join(attacked.text)


@given(st.text(max_size=40))
def test_any_text_keeps_the_page_whole(text):
    plain, found = read(page(verdict(), evidence())), read(page(verdict(text), evidence(text)))
    assert found.tags == plain.tags


def test_the_page_asks_nobody_for_anything():
    html = page(verdict(), evidence())
    reader = read(html)
    assert not {"script", "link", "img", "iframe", "object"} & set(reader.tags)
    assert not {"src", "href", "srcset", "action"} & {name for name, _ in reader.attributes}
    assert "default-src 'none'" in html
    assert "url(" not in html
    assert "@import" not in html


def test_the_page_can_be_read_by_everybody():
    html = page(verdict(), evidence())
    reader = read(html)
    assert ("lang", "en") in reader.attributes
    assert ("role", "img") in reader.attributes
    assert "prefers-color-scheme: dark" in html
    levels = [int(tag[1]) for tag in reader.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(later <= before + 1 for before, later in pairwise(levels))
    assert reader.tags.count("svg") == 1
    assert "title" in reader.tags[reader.tags.index("svg") :]


def test_the_picture_holds_a_point_for_every_rate():
    reader = read(page(verdict(), evidence(), [Curve("healthy", (0.9, 0.8, 0.7))]))
    assert reader.tags.count("circle") == 3 + 3 + 2
    assert reader.tags.count("polygon") == 1
    points = [value for name, value in reader.attributes if name == "points"]
    numbers = [float(number) for value in points for number in re.split("[ ,]", value)]
    assert all(0 <= number <= 640 for number in numbers)


@pytest.mark.parametrize("attack", ["| a | b |", "## head", "<b>x</b>", "*x*", "[a](http://b)", "`x`"])
def test_markdown_from_outside_is_escaped(attack):
    text = markdown(verdict(attack), Evidence(schema=1))
    body = text[: text.index("<details>")]
    bare = re.sub(r"\\.", "", body)  # what is escaped
    assert attack not in "\n".join(line for line in bare.splitlines() if not line.startswith("run "))


def test_a_command_with_backquotes_stays_in_its_block():
    found = verdict()
    found.options[0].command = "run ```x```"
    assert "````sh\nrun ```x```\n````" in markdown(found, Evidence(schema=1))


def test_the_evidence_is_attached_as_it_was_given():
    text = markdown(verdict(), evidence())
    attached = json.loads(text.split("```json\n")[1].split("\n```")[0])
    assert Evidence.model_validate(attached) == evidence()


def test_terminal_codes_of_a_log_never_reach_the_terminal():
    assert "\x1b" not in terminal(verdict("\x1b]0;title\x07"), evidence("\x1b[2J"))


def test_rates_that_are_counts_without_rounds_are_no_curve():
    assert curves(Evidence.model_validate({"schema": 1, "counters": {"accepted_per_position": [40, 20]}})) == []


def test_findings_that_are_all_but_impossible_are_left_to_json():
    found = verdict()
    found.findings[0].confidence = 0.004
    assert "OR205" not in terminal(found, evidence()) + markdown(found, evidence()) + page(found, evidence())


def test_an_effect_is_told_in_words():
    found = verdict().findings[0]
    assert effect(found) == "costs 0.50 to 1.50 tokens a round"
    found.effect = Effect(tokens_per_round=(-0.5, 0.25))
    assert effect(found) == "-0.50 to +0.25 tokens a round"


def test_a_bar_is_as_full_as_its_share():
    assert (bar(0, 4), bar(0.5, 4), bar(1, 4)) == ("░░░░", "██░░", "████")
