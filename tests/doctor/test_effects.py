"""Sizes: a cause that cannot give what is seen is put down, with its number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.doctor.effects import FLOOR, SIZES, sized, together, tokens
from outrider.doctor.evidence import Evidence
from outrider.doctor.observation import Observation


def loss(share: float) -> Observation:
    counters = {"mean_acceptance_length": 6.0 * share}
    return Observation(Evidence.model_validate({"counters": counters, "expected": {"mean_acceptance_length": 6.0}}))


def test_one_layer_off_is_too_small_for_a_collapse_and_says_so():
    signal = sized("layer_id_offset", loss(0.2))
    assert signal is not None
    assert signal.weight == FLOOR
    assert signal.text.startswith("too small")
    assert "20%" in signal.text


def test_missing_weights_are_too_large_for_a_small_loss():
    signal = sized("draft_weights_missing", loss(0.95))
    assert signal is not None
    assert signal.text.startswith("too large")


@pytest.mark.parametrize("cause", SIZES)
def test_a_published_size_speaks_not_against_itself(cause: str):
    low, high = SIZES[cause].share
    assert sized(cause, loss((low + high) / 2)) is None


@given(st.floats(0.17, 0.8))
def test_the_farther_off_the_size_the_more_it_counts(share: float):
    weights = [
        signal.weight if signal else 0.0 for signal in (sized("layer_id_offset", loss(s)) for s in (share, share * 0.9))
    ]
    assert weights[1] <= weights[0] <= 0


def test_without_an_expectation_no_size_is_judged():
    assert (
        sized("swa_ignored", Observation(Evidence.model_validate({"counters": {"mean_acceptance_length": 1.2}})))
        is None
    )


def test_several_small_causes_multiply_and_may_still_not_reach():
    left = together(("swa_ignored", "layer_id_offset", "causal_flag"), loss(0.19))
    assert left == pytest.approx(0.55 * 0.84 * 0.78)
    assert together(("swa_ignored",), loss(0.19)) is None


def test_the_effect_is_told_in_tokens_of_the_expected_length():
    assert tokens("layer_id_offset", loss(0.9)) == (-0.96, -0.12)
