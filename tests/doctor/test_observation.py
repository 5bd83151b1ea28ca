"""Numbers of any engine become one definition; contrasts know what differed; denied words do not count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.doctor.evidence import Counters, Evidence
from outrider.doctor.observation import Observation
from outrider.doctor.observation.reading import read
from outrider.doctor.rules.weights import target_mismatch


def observed(**evidence: object) -> Observation:
    return Observation(Evidence.model_validate(evidence))


def test_counts_give_length_and_rate_without_the_bonus_token():
    reading = read(Counters(rounds=96, drafted=288, accepted=144), 3)
    assert reading.tau == pytest.approx(2.5)
    assert reading.rate == pytest.approx(0.5)
    assert not reading.conflicts


def test_counts_per_position_become_cumulative_rates():
    reading = read(Counters(rounds=100, accepted_per_position=[80, 40, 20]), 3)
    assert reading.positions == (0.8, 0.4, 0.2)
    assert reading.conditional == pytest.approx((0.8, 0.5, 0.5))
    assert reading.tau == pytest.approx(2.4)


def test_a_rate_with_a_draft_length_gives_the_length():
    assert read(Counters(acceptance_rate=0.36), 15).tau == pytest.approx(6.4)


def test_a_length_that_the_counts_contradict_is_named():
    reading = read(Counters(rounds=100, accepted=150, mean_acceptance_length=3.5), None)
    assert any("3.5" in conflict and "2.5" in conflict for conflict in reading.conflicts)


def test_position_counts_without_rounds_have_no_scale():
    assert read(Counters(accepted_per_position=[80, 40]), 2).positions == ()


def test_a_truncated_list_of_positions_is_not_summed_to_a_length_that_a_rate_gives_better():
    assert read(Counters(accepted_per_position=[0.8, 0.6], acceptance_rate=0.4), 7).tau == pytest.approx(3.8)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=15).map(lambda rates: sorted(rates, reverse=True)),
    st.integers(1, 10_000),
)
def test_every_way_to_the_length_agrees_for_a_chain(rates: list[float], rounds: int):
    accepted, k = sum(rates) * rounds, len(rates)
    counters = Counters(
        rounds=rounds, accepted=accepted, drafted=rounds * k, accepted_per_position=rates,
        acceptance_rate=accepted / (rounds * k), mean_acceptance_length=1 + sum(rates),
    )  # fmt: skip
    assert not read(counters, k).conflicts


def test_the_draft_length_is_read_from_the_command():
    assert observed(engine={"command": "vllm serve m '{\"num_speculative_tokens\": 15}'"}).facts.drafted == 15
    assert observed(engine={"command": "llama-server --spec-draft-n-max 7"}).facts.drafted == 7
    assert observed(engine={"command": "sglang --speculative-num-draft-tokens 16"}).facts.drafted == 15


def test_a_contrast_knows_what_differed_and_by_how_much():
    o = observed(
        counters={"acceptance_rate": 0.01},
        series=[{"when": {"enforce_eager": True}, "counters": {"acceptance_rate": 0.4}}],
    )
    (contrast,) = o.at("graphs")
    assert contrast.accepted is not None
    assert contrast.accepted > 20
    assert not o.at("context")


def test_a_precision_in_the_name_of_a_drafter_varies_the_precision():
    o = observed(series=[{"when": {"drafter": "w4a16"}}, {"when": {"drafter": "bf16"}}])
    assert o.at("precision")


@pytest.mark.parametrize("name", ["/data/llama2/still-training/drafter", "./llama2/still-training/drafter/"])
def test_where_a_folder_lies_says_nothing_of_the_model(name):
    seen = observed(method="dflash", drafter={"name": name}, target={"name": "Qwen/Qwen3-8B"})
    assert "drafter" in seen.words.texts["names"]
    assert "llama2" not in seen.words.texts["names"]
    assert not [signal for signal in target_mismatch(seen) if "named" in signal.text]


def test_denied_words_do_not_count():
    words = observed(notes="The server starts without error. No crash was seen; the text is garbled.").words
    assert not words.has("crash")
    assert words.has("garbled")


def test_nested_config_parts_are_read_wherever_the_key_stands():
    facts = observed(drafter={"config": {"dflash_config": {"target_layer_ids": [1, 5], "block_size": 8}}}).facts
    assert facts.taps == [1, 5]
    assert facts.block == 8


def test_a_block_drafter_gives_one_token_less_than_its_block_and_dspark_all_of_it():
    assert observed(method="dflash", drafter={"config": {"block_size": 16}}).facts.trained_depth == 15
    assert observed(method="dspark", drafter={"config": {"block_size": 7}}).facts.trained_depth == 7
