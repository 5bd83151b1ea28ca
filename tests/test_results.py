"""Records: exact names, no NaN, versioned, readable again."""

import json

import pytest
from pydantic import ValidationError

from outrider.errors import UsageError
from outrider.provenance import provenance
from outrider.results import (
    ArmResult,
    BenchResult,
    Comparison,
    GenerationResult,
    MethodResult,
    NearTie,
    Ratio,
    Sample,
    TokenResult,
)


def method(**changes):
    fields = {
        "drafter": "ngram",
        "tokens": 128,
        "rounds": 64,
        "acceptance_length": 2.0,
        "position_rates": [0.6, 0.4],
        "tokens_per_second": 20.0,
        "ratio": 1.5,
        "ratio_low": 1.4,
        "ratio_high": 1.6,
        "texts_equal": True,
        "near_ties": [],
    }
    return MethodResult(**fields | changes)


def bench():
    sample = Sample(
        prompt=0,
        repeat=0,
        tokens=8,
        seconds=2.0,
        prefill_seconds=1.0,
        step_seconds=None,
        rounds=8,
        accepted=0,
    )
    ratio = Ratio(value=1.0, low=1.0, high=1.0, unit="prompts")
    arm = ArmResult(
        name="base",
        about={"engine": "x"},
        load_seconds=0.5,
        peak_bytes=None,
        samples=[sample],
        tokens_per_second=4.0,
        decode_tokens_per_second=8.0,
        median_prefill_seconds=1.0,
        median_step_seconds=None,
        acceptance_length=1.0,
        ratios={"all": ratio},
        decode_ratios={"all": ratio},
        same_tokens=1,
        first_differences=[None],
    )
    return BenchResult(
        name="smoke",
        max_tokens=8,
        warmup=1,
        repeats=1,
        categories=["qa"],
        prompt_tokens=[5],
        arms=[arm],
        skipped={},
        provenance=provenance(seed=0),
    )


def test_a_method_has_exactly_the_promised_fields():
    assert list(json.loads(method().model_dump_json())) == [
        "drafter",
        "tokens",
        "rounds",
        "acceptance_length",
        "position_rates",
        "tokens_per_second",
        "ratio",
        "ratio_low",
        "ratio_high",
        "texts_equal",
        "near_ties",
    ]


def test_a_comparison_survives_json():
    tie = NearTie(prompt=3, position=17, margin=2e-5, plain_token=11, drafted_token=12)
    ours = method(texts_equal=False, near_ties=[tie])
    found = Comparison(methods=[method(drafter="none"), ours], provenance=provenance())
    assert Comparison.model_validate_json(found.model_dump_json()) == found
    assert json.loads(found.model_dump_json())["schema_version"] == 1


def test_a_generation_survives_json():
    found = GenerationResult(
        text="a b",
        finish_reason="length",
        prompt_tokens=3,
        tokens=[TokenResult(id=1, text="a", source="target", logprob=-0.5)],
        rounds=1,
        acceptance_length=None,
        acceptance_rate=None,
        position_rates=[],
        conditional_rates=[],
        seconds=0.1,
        tokens_per_second=10.0,
        model="m",
        drafter="none",
        dtype="float32",
        sampling={"temperature": 0.0},
        provenance=provenance(),
    )
    assert GenerationResult.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    "changes",
    [{"ratio": float("nan")}, {"speed": 1.0}, {"tokens": -1}],
    ids=["nan", "unknown field", "negative count"],
)
def test_a_wrong_value_is_refused(changes):
    with pytest.raises(ValidationError):
        method(**changes)


def test_a_token_comes_from_the_draft_or_the_target():
    with pytest.raises(ValidationError):
        TokenResult(id=1, text="a", source="bonus")


def test_a_benchmark_is_saved_and_read_again(tmp_path):
    path = tmp_path / "results" / "smoke.json"
    bench().save(path)
    assert BenchResult.load(path) == bench().model_copy(update={"provenance": BenchResult.load(path).provenance})


def test_another_schema_version_is_refused_in_one_line(tmp_path):
    path = tmp_path / "old.json"
    data = json.loads(bench().model_dump_json()) | {"schema_version": 2}
    path.write_text(json.dumps(data))
    with pytest.raises(UsageError, match="schema version 1") as caught:
        BenchResult.load(path)
    assert "\n" not in str(caught.value)


def test_a_missing_result_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"nowhere\.json: No such file"):
        BenchResult.load(tmp_path / "nowhere.json")
