"""Rules: the table is whole, each has a page, and invented reports of every cause are read for what they are."""

from pathlib import Path

import pytest
import yaml

from outrider.doctor.evidence import Evidence
from outrider.doctor.examine import examine
from outrider.doctor.rule import INPUTS, RULES, rule
from outrider.doctor.rules.remedies import remedies, table
from outrider.doctor.rules.words import vocabulary
from outrider.doctor.verdict import Cause, Verdict
from outrider.errors import UnknownNameError

CAUSES = Cause.__args__
REPORTS = sorted((Path(__file__).parent / "reports").glob("*.yaml"))
AMBIGUOUS = {"other-1"}
"""A report that says nothing; it has no right answer but a low confidence."""


def verdict(path: Path) -> Verdict:
    return examine(Evidence.model_validate(yaml.safe_load(path.read_text())))


def named(path: Path) -> list[str]:
    return [finding.cause for finding in verdict(path).findings if finding.standing != "refuted"]


def cause_of(path: Path) -> str:
    return path.stem.rsplit("-", 1)[0]


@pytest.mark.parametrize("path", [p for p in REPORTS if p.stem not in AMBIGUOUS], ids=lambda p: p.stem)
def test_the_cause_of_an_invented_report_is_among_the_first_three(path: Path):
    assert cause_of(path) in named(path)[:3]


def test_the_cause_of_most_invented_reports_is_first():
    right = [cause_of(path) in named(path)[:1] for path in REPORTS]
    assert sum(right) / len(right) > 0.85


def test_every_cause_has_a_report():
    assert {cause_of(path) for path in REPORTS} == set(CAUSES)


def test_a_report_that_says_nothing_is_not_diagnosed():
    (path,) = (p for p in REPORTS if p.stem == "other-1")
    assert all(finding.confidence < 0.3 for finding in verdict(path).findings)


def test_the_table_of_rules_covers_every_cause_once_with_measurement_first():
    assert sorted(r.cause for r in RULES) == sorted(CAUSES)
    assert len({r.code for r in RULES}) == len(RULES)
    assert RULES[0].cause == "metrics_definition"
    assert all(need in INPUTS for r in RULES for need in r.needs)


@pytest.mark.parametrize("one", RULES, ids=lambda r: r.code)
def test_every_rule_has_a_page_with_its_remedies(one):
    page = one.page
    assert page.startswith(f"# {one.code}: {one.name}")
    for heading in ("What it finds", "Why it costs", "What it reads", "How it is tested", "What confirmed looks like",
                    "Remedy", "What it is confused with"):  # fmt: skip
        assert f"## {heading}" in page
    assert all(text in page for part in table()[one.cause].values() for text in part)


def test_a_code_is_found_in_any_case_and_an_unknown_one_names_the_nearest():
    assert rule("or201").cause == "layer_id_offset"
    with pytest.raises(UnknownNameError, match="OR"):
        rule("OR209")


def test_vocabulary_and_remedies_know_all_causes():
    assert set(vocabulary()) == set(CAUSES) == set(table())
    assert remedies("swa_ignored", "vllm")[0].startswith("0.26.0")
    assert remedies("swa_ignored", None) == table()["swa_ignored"]["all"]
