"""Known defects are matched with version arithmetic, weakly for dates and forks, and only with something in common."""

import re

import pytest

from outrider.doctor.evidence import EngineFacts, Evidence
from outrider.doctor.known import books, matching
from outrider.doctor.known.versions import known_version
from outrider.doctor.observation import Observation

WINDOWED = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 2048}


def found(**evidence: object) -> dict[str, float]:
    return {defect.id: weight for defect, weight in matching(Observation(Evidence.model_validate(evidence)))}


def windowed(version: str, **engine: object) -> dict[str, object]:
    return {
        "method": "dflash",
        "engine": {"name": "vllm", "version": version, **engine},
        "drafter": {"config": WINDOWED},
    }


@pytest.mark.parametrize(("version", "hit"), [("0.20.1", True), ("0.25.1", True), ("0.26.0", False), ("0.33.0", False)])
def test_a_defect_ends_with_the_release_that_fixed_it(version, hit):
    assert ("windows-ignored" in found(**windowed(version))) is hit


def test_a_build_before_the_fix_still_has_the_defect():
    assert "windows-ignored" in found(**windowed("0.24.1rc1.dev861+g1234"))


def test_a_fork_counts_less_than_the_release():
    assert found(**windowed("0.20.1", fork=True))["windows-ignored"] < found(**windowed("0.20.1"))["windows-ignored"]


def test_a_date_stands_for_the_newest_release_of_that_day():
    releases = {"2026-05-15": "0.21.0", "2026-05-29": "0.22.0"}
    known = known_version(EngineFacts(name="vllm", version="main, 2026-05-20"), releases)
    assert str(known.version) == "0.21.0"
    assert known.trust < 1


def test_a_llamacpp_build_number_is_a_version():
    assert str(known_version(EngineFacts(name="llama.cpp", version="b10015 (CUDA)"), {}).version) == "10015"


def test_an_unknown_version_rules_nothing_out_and_counts_half():
    known = known_version(EngineFacts(name="vllm", version="some image of last week"), {})
    assert known.within("<0.1")
    assert known.trust == 0.5


def test_keys_that_the_config_lacks_rule_a_defect_out():
    evidence = windowed("0.20.1") | {"drafter": {"config": {"layer_types": ["full_attention"], "causal": False}}}
    assert "one-causal-flag-for-all-layers" not in found(**evidence)


def test_a_defect_of_hybrid_targets_is_not_one_of_others():
    evidence = {"method": "mtp", "engine": {"name": "vllm", "version": "0.24.0"}, "output": {"corrupt": True}}
    assert "prefix-state-and-mtp" not in found(**evidence, target={"hybrid": False})
    assert "prefix-state-and-mtp" in found(**evidence, target={"hybrid": True})


def test_a_defect_in_range_that_shares_nothing_with_what_is_seen_is_silent():
    assert not found(
        method="mtp", engine={"name": "vllm", "version": "0.24.0"}, counters={"mean_acceptance_length": 3.1}
    )


def test_every_defect_has_a_signature_that_compiles_and_a_reference_and_is_named_once_an_engine():
    for book in books():
        ids = [defect.id for defect in book.defect]
        assert len(ids) == len(set(ids)), book.engine
        for defect in book.defect:
            re.compile(defect.signature)
            assert defect.reference
            assert known_version(EngineFacts(), {}).within(defect.versions)


def test_a_defect_that_numbers_do_not_tell_waits_to_be_named():
    server = {"method": "dflash", "engine": {"name": "llama.cpp", "version": "b11549"}}
    nothing = {"counters": {"rounds": 900, "drafted": 6300, "accepted": 0}}
    assert "slots-in-parallel" not in found(**server, **nothing, log="n_slots = 1, slot print_timing")
    assert "slots-in-parallel" in found(**server, **nothing, log="n_slots = 8, slot print_timing")
    assert "slots-in-parallel" in found(**server, **nothing, notes="since we start it with -np 4")


def test_a_defect_needs_something_that_tells_it():
    one = next(defect for book in books() for defect in book.defect if defect.shape)
    with pytest.raises(ValueError, match="expected a shape, or named_only"):
        type(one).model_validate(one.model_dump() | {"shape": ()})
