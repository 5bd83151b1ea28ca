"""Explanations of curves drawn from known rates, with texts that differ as real ones do."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from outrider.acceptance import Acceptance, Round
from outrider.doctor.ablation.counts import Counts, few_texts
from outrider.doctor.ablation.explain import INVISIBLE, UNEXPLAINED, explain
from outrider.doctor.ablation.fault import Fault
from outrider.doctor.ablation.hypothesis import Hypothesis
from outrider.doctor.ablation.likelihood import OTHER_LENGTH, _log_gamma, log_likelihoods
from outrider.doctor.ablation.part import Observed, effect_of
from outrider.doctor.ablation.published import PUBLISHED, published
from outrider.doctor.ablation.spread import spread_of
from outrider.doctor.ablation.table import AblationTable, Entry
from outrider.errors import UsageError

HEALTHY = (0.8, 0.75, 0.7, 0.7)
FAULTS = {
    "swa_ignored": (0.78, 0.6, 0.5, 0.4),
    "mask_token": (0.75, 0.1, 0.1, 0.1),
    "lm_head_or_embedding_not_shared": (0.01, 0.01, 0.01, 0.01),
    "dtype_or_quantisation": (0.8, 0.75, 0.7, 0.69),
}


def drawn(rates, seed, *, texts=24, rounds=60, differ=0.4) -> Counts:
    """Counts of texts whose log-odds differ by so much; the same seed has the same texts and the same chance."""
    random = np.random.default_rng(seed)
    odds_K = np.log(np.array(rates) / (1 - np.array(rates)))
    shifts_X = random.normal(0, differ, texts)
    rates_XK = 1 / (1 + np.exp(-(odds_K + shifts_X[:, None])))
    held = random.random((texts, rounds, len(HEALTHY)))[..., : len(rates)] < rates_XK[:, None]
    return Counts(np.full(texts, float(rounds)), np.logical_and.accumulate(held, 2).sum(1).astype(float))


def named(cause) -> Fault:
    return Fault(name=cause, strength="", cause=cause, how="")


def table_of(faults=FAULTS, seed=0, **options) -> AblationTable:
    entries = tuple(Entry(named(cause), drawn(rates, seed, **options)) for cause, rates in faults.items())
    return AblationTable(drawn(HEALTHY, seed, **options), entries)


def seen(rates, seed=1, **options) -> Observed:
    counts = drawn(rates, seed, **options)
    return Observed(counts.rounds, counts.curve)


@pytest.mark.parametrize("cause", ["swa_ignored", "mask_token", "lm_head_or_embedding_not_shared"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_fault_is_named_from_the_curve_of_other_texts(cause, seed):
    first = explain(seen(FAULTS[cause], seed), table_of()).ranking[0]
    assert first.cause == cause
    assert first.probability > 0.5
    assert first.effect.low < first.effect.value < 0


@pytest.mark.parametrize("rates", [HEALTHY, FAULTS["dtype_or_quantisation"]])
def test_a_fault_that_cannot_be_seen_is_not_named(rates):
    found = explain(seen(rates), table_of())
    assert found.ranking[0].cause == INVISIBLE
    assert found.invisible == ("dtype_or_quantisation",)


def test_a_curve_that_nothing_makes_is_unexplained():
    found = explain(Observed(2000, (0.3, 0.29, 0.285, 0.28)), table_of())
    assert found.ranking[0].cause == UNEXPLAINED
    assert found.ranking[0].effect is None


def test_two_faults_at_once_are_named_together():
    faults = {
        "swa_ignored": (0.5, 0.74, 0.7, 0.7),
        "mask_token": (0.8, 0.3, 0.7, 0.7),
        "causal_flag": (0.8, 0.7, 0.4, 0.3),
    }
    both = (0.5, 0.3, 0.7, 0.7)
    first = explain(seen(both), table_of(faults)).ranking[0]
    assert first.cause == "mask_token + swa_ignored"
    assert first.faults == ("swa_ignored", "mask_token")
    expected = np.cumprod(both).sum() - np.cumprod(HEALTHY).sum()
    assert first.effect.low < expected < first.effect.high


def test_probabilities_are_a_ranking_and_sum_to_one():
    found = explain(seen(FAULTS["swa_ignored"]), table_of())
    values = [one.probability for one in found.ranking]
    assert sum(values) == pytest.approx(1)
    assert values == sorted(values, reverse=True)
    assert found.alone[0][0] == "swa_ignored"
    assert found.alone[0][1] > 0 > found.alone[-1][1]


def test_what_is_known_of_a_cause_beforehand_counts():
    twins = {"swa_ignored": FAULTS["swa_ignored"], "causal_flag": FAULTS["swa_ignored"]}
    found = explain(seen(FAULTS["swa_ignored"]), table_of(twins), priors={"causal_flag": 20})
    assert found.ranking[0].cause == "causal_flag"
    assert found.ranking[0].alike == ("swa_ignored",)


def test_few_rounds_show_less_and_shared_texts_more():
    many, few = (len(explain(seen(HEALTHY, rounds=rounds, texts=8), table_of()).invisible) for rounds in (60, 2))
    assert few > many
    mild = {"swa_ignored": (0.77, 0.73, 0.68, 0.68)}
    observed = seen(HEALTHY)
    assert explain(observed, table_of(mild)).invisible == ("swa_ignored",)
    assert explain(observed, table_of(mild), shared=0.99).invisible == ()


def test_another_number_of_positions_speaks_for_another_draft_length():
    table = table_of({"num_speculative_tokens": HEALTHY[:2], "mask_token": FAULTS["mask_token"]})
    assert explain(seen(HEALTHY[:2]), table).ranking[0].cause == "num_speculative_tokens"


def test_intervals_of_an_effect_hold_that_on_other_texts():
    held = []
    for seed in range(60):
        table = table_of({"swa_ignored": FAULTS["swa_ignored"]}, seed=2 * seed, texts=8)
        other, healthy = (drawn(rates, 2 * seed + 1, texts=8) for rates in (FAULTS["swa_ignored"], HEALTHY))
        effect = effect_of(table.entries[0], table, other.rounds)
        held.append(effect.low <= other.length - healthy.length <= effect.high)
    assert np.mean(held) >= 0.88


def test_what_is_said_with_a_probability_is_right_as_often():
    said = []
    table = table_of()
    for seed in range(1, 41):
        for cause in ("swa_ignored", "mask_token"):
            found = explain(seen(FAULTS[cause], seed, texts=3, rounds=15), table)
            first = found.ranking[0]
            right = first.cause == cause or (first.cause == INVISIBLE and cause in found.invisible)
            said.append((first.probability, right))
    assert abs(np.mean([p for p, _ in said]) - np.mean([right for _, right in said])) < 0.1


@pytest.mark.parametrize("differ", [0.0, 0.5, 0.8])
def test_the_spread_of_texts_is_found(differ):
    found = spread_of([drawn(HEALTHY, seed, texts=40, rounds=100, differ=differ) for seed in range(5)])
    assert found.text == pytest.approx(differ, abs=0.1)
    assert 1 <= found.rounds < 1.2


def test_two_texts_have_no_spread():
    found = spread_of([drawn(HEALTHY, 0, texts=2)])
    assert (found.text, found.rounds) == (0.0, 1.0)


@given(st.floats(1e-6, 1e5))
def test_log_gamma_is_that_of_the_standard_library(x):
    assert _log_gamma(np.array([x]))[0] == pytest.approx(math.lgamma(x), abs=1e-9, rel=1e-9)


def hypothesis_of(alpha, beta, drafted=None) -> Hypothesis:
    return Hypothesis((), np.array(alpha), np.array(beta), None, drafted)


def test_the_likelihood_is_beta_binomial_where_texts_do_not_differ():
    one = hypothesis_of([3.5, 8.0], [2.0, 1.5])
    counts = np.array([[20.0, 12.0], [12.0, 7.0]])
    expected = sum(
        stats.betabinom.logpmf(passed, came, a, b) - math.log(special.comb(came, passed))
        for a, b, (came, passed) in zip(one.alpha_K, one.beta_K, counts, strict=True)
    )
    assert log_likelihoods([one], counts, None, 0.0)[0] == pytest.approx(expected)


def test_the_shift_of_all_odds_is_integrated_out():
    known, counts = 1e6, np.array([[50.0, 30.0], [30.0, 12.0]])
    one = hypothesis_of([0.7 * known, 0.5 * known], [0.3 * known, 0.5 * known])
    shifts = np.random.default_rng(0).normal(0, 0.4, 200_000)[:, None]
    rates = 1 / (1 + np.exp(-(np.log([0.7 / 0.3, 1.0]) + shifts)))
    logs = (counts[:, 1] * np.log(rates) + (counts[:, 0] - counts[:, 1]) * np.log1p(-rates)).sum(1)
    assert log_likelihoods([one], counts, None, 0.4)[0] == pytest.approx(
        special.logsumexp(logs) - math.log(len(logs)), abs=0.02
    )


def test_a_drafter_of_another_length_is_unlikely():
    lengths = [hypothesis_of([5.0], [5.0], drafted) for drafted in (7, 15, None)]
    logs = log_likelihoods(lengths, np.array([[10.0, 5.0]]), 7, 0.1)
    assert logs[1] - logs[0] == pytest.approx(OTHER_LENGTH)
    assert logs[2] == pytest.approx(logs[0])


@pytest.mark.parametrize("texts", [5, 12, 40])
def test_few_texts_widen_an_interval_as_students_law_does(texts):
    expected = stats.t.ppf(0.975, texts - 1) / stats.norm.ppf(0.975) * (texts / (texts - 1)) ** 0.5
    assert few_texts(np.ones(texts)) == pytest.approx(expected, rel=0.02)
    heavy = np.ones(texts)
    heavy[0] = 50
    assert few_texts(heavy) > few_texts(np.ones(texts))


def test_counts_are_those_of_the_rounds():
    rounds = [[Round(2, 2, 0), Round(2, 2, 2)], [Round(2, 2, 1)]]
    counts = Counts.of(Acceptance.from_sequences(rounds), 2)
    assert counts.hits_XK.tolist() == [[1, 1], [1, 0]]
    assert counts.pairs_K2.tolist() == [[3, 2], [2, 1]]
    assert counts.length == pytest.approx(2)
    assert counts.widened(4).hits_XK.shape == (2, 4)
    assert counts.interval().low <= 2 <= counts.interval().high


@pytest.mark.parametrize(
    ("rounds", "rates"), [(0, (0.5,)), (10, ()), (10, (0.5, 0.6)), (10, (1.2,)), (float("nan"), (0.5,))]
)
def test_a_curve_that_cannot_be_is_refused(rounds, rates):
    with pytest.raises(UsageError, match="cumulative rates"):
        Observed(rounds, rates)


def test_more_positions_than_were_tried_and_impossible_shares_are_refused():
    table = table_of()
    with pytest.raises(UsageError, match="5 positions, the table 4"):
        explain(Observed(10, (0.5, 0.4, 0.3, 0.2, 0.1)), table)
    with pytest.raises(UsageError, match="texts part at near-ties"):
        explain(seen(HEALTHY), table, shared=1.0)


def test_published_effects_leave_a_share_of_what_was_accepted():
    assert all(0 <= one.kept < 1 for one in PUBLISHED)
    assert published("prefix_cache")[0].kept == pytest.approx(0.02 / 2.41)
    assert published("other") == ()
