"""Uniforms depend on seed, purpose and position alone.

Fixed seeds; for a fresh one each Kolmogorov-Smirnov or correlation test would fail falsely once in 10,000.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from outrider.engine.uniforms import ACCEPT, DECIDE, DRAFT, RESIDUAL, Uniforms, fresh_seed

FALSE_ALARM = 1e-4
PURPOSES = (DECIDE, ACCEPT, RESIDUAL, DRAFT)
SEEDS = st.integers(0, 2**63 - 1)


@given(SEEDS, st.sampled_from(PURPOSES), st.integers(0, 10_000), st.integers(1, 12))
def test_a_position_has_one_uniform_however_many_are_asked_for(seed, purpose, position, count):
    together = Uniforms(seed).at(purpose, position, count)
    alone = [Uniforms(seed).at(purpose, position + step, 1)[0] for step in range(count)]
    assert together.tolist() == alone
    assert together.dtype == np.float64
    assert np.all((together >= 0) & (together < 1))


@given(SEEDS, st.integers(0, 10_000))
def test_purposes_positions_and_seeds_do_not_share_uniforms(seed, position):
    drawn = [Uniforms(seed).at(purpose, position, 8).tolist() for purpose in PURPOSES]
    drawn.append(Uniforms(seed ^ 1).at(DECIDE, position, 8).tolist())
    assert len({value for values in drawn for value in values}) == 40


def test_uniforms_are_uniform_along_positions_and_along_seeds():
    along = Uniforms(7).at(DECIDE, 0, 20_000)
    across = np.array([Uniforms(seed).at(DECIDE, 5, 1)[0] for seed in range(4_000)])
    for drawn in (along, across):
        assert stats.kstest(drawn, "uniform").pvalue > FALSE_ALARM
    assert stats.pearsonr(along[1:], along[:-1]).pvalue > FALSE_ALARM


def test_purposes_are_not_correlated():
    accept, residual = (Uniforms(3).at(purpose, 0, 20_000) for purpose in (ACCEPT, RESIDUAL))
    assert stats.pearsonr(accept, residual).pvalue > FALSE_ALARM


def test_a_fresh_seed_is_fresh_and_in_range():
    seeds = {fresh_seed() for _ in range(50)}
    assert len(seeds) == 50
    assert all(0 <= seed < 2**63 for seed in seeds)
