"""The verdict: healthy evidence has no suspect, the story is told, probabilities are probabilities, nothing crashes."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.doctor.calibration import REPEAT, probabilities, total
from outrider.doctor.evidence import Evidence
from outrider.doctor.examine import examine
from outrider.doctor.rules.experiments import experiments, information
from outrider.doctor.rules.signal import Signal
from outrider.doctor.verdict import Finding, Verdict

HERE = Path(__file__).parent
HEALTHY = sorted((HERE / "healthy").glob("*.yaml"))
STORY = HERE.parents[1] / "examples" / "qwen36-dflash" / "evidence.yaml"


def verdict(evidence: dict[str, object]) -> Verdict:
    return examine(Evidence.model_validate(evidence))


def of(found: Verdict, cause: str) -> Finding:
    return next(finding for finding in found.findings if finding.cause == cause)


@pytest.mark.parametrize("path", HEALTHY, ids=lambda p: p.stem)
def test_published_healthy_figures_give_no_finding_above_three_tenths(path: Path):
    found = verdict(yaml.safe_load(path.read_text()))
    assert all(finding.confidence < 0.3 for finding in found.findings)
    assert found.summary.startswith("Nothing in this evidence")


def test_the_story_sizes_every_suspect_and_names_what_is_left():
    found = verdict(yaml.safe_load(STORY.read_text()))
    for cause in ("swa_ignored", "layer_id_offset"):
        suspect = of(found, cause)
        assert suspect.standing == "refuted"
        assert "too small" in suspect.against[0]
        assert any("known defect" in text for text in suspect.evidence)
    assert of(found, "undertrained_drafter").confidence < 0.3
    assert {finding.cause for finding in found.findings[:2]} == {"wrong_layer_ids", "mask_token"}
    assert found.findings[0].standing == "likely"
    assert "even together they leave 36%" in found.summary
    assert "embedded engine" in found.next[0]


def test_correlation_alone_is_never_confirmed():
    series = [{"when": {"enforce_eager": True}, "counters": {"mean_acceptance_length": 6.0}}]
    found = verdict({"method": "dflash", "counters": {"mean_acceptance_length": 1.0}, "series": series})
    assert found.findings[0].cause == "cuda_graph_or_kernel"
    assert found.findings[0].standing == "likely"


def test_a_contradiction_in_files_is_confirmed():
    config = {"mask_token_id": 300_000, "block_size": 16, "hidden_size": 64, "num_hidden_layers": 5}
    found = verdict({
        "method": "dflash", "target": {"config": {"vocab_size": 248_320}}, "drafter": {"config": config},
        "counters": {"mean_acceptance_length": 1.3},
    })  # fmt: skip
    assert (found.findings[0].cause, found.findings[0].standing) == ("mask_token", "confirmed")


def test_what_was_not_examined_says_what_it_needs():
    missing = {entry.code: entry.needs for entry in verdict({"method": "dflash"}).not_examined}
    assert missing["OR301"] == "what is known of the drafter's training"
    assert "prefix caching off" in missing["OR402"]


def test_the_next_measurement_parts_the_suspects_and_is_not_one_that_was_made():
    evidence = {
        "method": "dflash",
        "counters": {"mean_acceptance_length": 1.0},
        "notes": "only on blackwell under full graphs",
    }
    assert any("without CUDA graphs" in text for text in verdict(evidence).next)
    made = {**evidence, "series": [{"when": {"enforce_eager": True}, "counters": {"mean_acceptance_length": 1.0}}]}
    assert not any("without CUDA graphs" in text for text in verdict(made).next)


def test_an_experiment_is_worth_most_when_it_halves_the_chances():
    graphs = next(e for e in experiments() if "graphs" in e.dimensions)
    even = information(graphs, {"cuda_graph_or_kernel": 0.5, "mask_token": 0.5})
    sure = information(graphs, {"cuda_graph_or_kernel": 0.95, "mask_token": 0.05})
    assert even > sure > 0
    assert information(graphs, {"mask_token": 1.0}) == pytest.approx(0)


def test_warnings_of_the_reader_are_told():
    assert examine(Evidence(), ["Unknown key 'drafer'."]).notes == ["Unknown key 'drafer'."]


def test_signals_of_one_kind_repeat_one_another_and_of_two_kinds_add_up():
    word, curve = Signal("a", 2.0, "words"), Signal("b", 1.0, "curve")
    assert total([word, curve]) == pytest.approx(3.0)
    assert total([word, word]) == pytest.approx(2.0 + 2.0 * REPEAT)
    assert total([word, Signal("c", -1.0, "words")]) == pytest.approx(1.0)


@given(st.dictionaries(st.text(min_size=1), st.floats(-50, 50), min_size=1))
def test_chances_are_positive_and_sum_to_one(scores: dict[str, float]):
    assert sum(probabilities(scores).values()) == pytest.approx(1)


NUMBERS = st.none() | st.floats(0, 1e6) | st.just(0.0)
COUNTERS = st.fixed_dictionaries({}, optional={
    "rounds": NUMBERS, "drafted": NUMBERS, "accepted": NUMBERS, "acceptance_rate": NUMBERS,
    "mean_acceptance_length": NUMBERS, "tokens_per_second": NUMBERS, "baseline_tokens_per_second": NUMBERS,
    "prefix_cache_hit_rate": NUMBERS, "accepted_per_position": st.lists(st.floats(0, 1e5), max_size=8),
})  # fmt: skip
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.lists(st.integers(), max_size=3)
KEYS = st.sampled_from([
    "context_tokens", "enforce_eager", "concurrency", "engine", "drafter", "block_size", "layer_types", "mask_token_id",
    "target_layer_ids", "vocab_size", "partial_rotary_factor", "dflash_config", "num_hidden_layers", "temperature",
])  # fmt: skip
OPEN = st.dictionaries(KEYS, VALUES, max_size=4)
TENSORS = st.dictionaries(st.text(), st.lists(st.integers()), max_size=2)


@settings(max_examples=150, deadline=None)
@given(st.fixed_dictionaries({}, optional={
    "method": st.sampled_from(["dflash", "dspark", "mtp", "ngram", "eagle3", "draft_model"]),
    "counters": COUNTERS,
    "series": st.lists(st.fixed_dictionaries({"when": OPEN, "counters": COUNTERS}), max_size=3),
    "drafter": st.fixed_dictionaries({"config": OPEN, "tensors": TENSORS}),
    "target": st.fixed_dictionaries({"config": OPEN, "name": st.none() | st.text()}),
    "engine": st.fixed_dictionaries({
        "name": st.sampled_from(["vllm", "sglang", "llama.cpp", "mlx"]), "version": st.none() | st.text(),
        "settings": OPEN,
    }),
    "expected": st.fixed_dictionaries({"mean_acceptance_length": NUMBERS}),
    "error": st.none() | st.text(), "notes": st.none() | st.text(),
}))  # fmt: skip
def test_no_evidence_crashes_the_doctor_and_confidences_stay_probabilities(evidence: dict[str, object]):
    found = verdict(evidence)
    assert sum(finding.confidence for finding in found.findings) <= 1.01
    assert found.summary
