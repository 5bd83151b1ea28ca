"""Probabilities corrected by what such guesses were worth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.drafters.calibration import Calibration
from outrider.drafters.trees.belief import Belief
from outrider.drafters.trees.nodes import Nodes

PROBABILITY = st.floats(0, 1)


def taught(claimed: float, rate: float, times: int, calibration: Calibration | None = None) -> Calibration:
    calibration = calibration or Calibration()
    generator = np.random.default_rng(0)
    for _ in range(times):
        calibration.learn(claimed, right=bool(generator.random() < rate))
    return calibration


@given(PROBABILITY)
def test_before_anything_is_seen_a_probability_stands_for_itself(probability):
    assert Calibration().of(probability) == pytest.approx(probability)


@given(st.lists(st.tuples(PROBABILITY, st.booleans()), max_size=60), PROBABILITY)
def test_what_is_learnt_stays_a_probability(seen, asked):
    calibration = Calibration()
    for probability, right in seen:
        calibration.learn(probability, right=right)
    assert 0 <= calibration.of(asked) <= 1


@pytest.mark.parametrize(("claimed", "rate"), [(0.95, 0.6), (0.9, 0.9), (0.2, 0.5), (0.6, 0.1)])
def test_it_comes_to_believe_the_rate_that_was_seen(claimed, rate):
    assert taught(claimed, rate, 2000).of(claimed) == pytest.approx(rate, abs=0.15)


def test_one_class_teaches_nothing_about_another():
    calibration = taught(0.95, 0.1, 500)
    assert calibration.of(0.4) == pytest.approx(0.4)


def test_what_is_long_past_is_forgotten():
    calibration = taught(0.6, 0.0, 5000)
    assert calibration.of(0.6) < 0.1
    assert taught(0.6, 1.0, 300, calibration).of(0.6) > 0.85


#      1: best word; 2: its child; 3: second word; 4: child of 3
TREE = Nodes([5, 6, 7, 8], [0, 1, 0, 3], [np.log(0.6), np.log(0.6 * 0.5), np.log(0.2), np.log(0.2 * 0.5)])


def test_the_reach_of_a_node_is_the_product_along_its_path():
    assert Belief().reach(TREE) == pytest.approx([0.6, 0.3, 0.2, 0.1])


@pytest.mark.parametrize(
    ("decided", "moved"),
    [
        ((5, 6), [1, 1, -1, 0]),
        ((5, 9), [1, -1, -1, 0]),
        ((7, 8), [-1, 0, 1, 1]),
        ((7,), [-1, 0, 1, 0]),
        ((9, 6), [-1, 0, -1, 0]),
        ((), [0, 0, 0, 0]),
    ],
)
def test_all_children_of_the_nodes_that_were_passed_teach_and_no_others(decided, moved):
    belief = Belief()
    belief.learn(TREE, decided)
    reach = [1.0, *belief.reach(TREE)]
    conditional = [reach[node] / reach[parent] for node, parent in enumerate(TREE.parents, start=1)]
    changes = np.sign(np.round(np.array(conditional) - [0.6, 0.5, 0.2, 0.5], 9))
    assert changes.tolist() == moved


def test_words_beside_the_best_chain_are_judged_apart():
    belief = Belief()
    for _ in range(100):
        belief.learn(TREE, (7, 9))
    reach = belief.reach(TREE)
    assert reach[3] / reach[2] < 0.1, "below the second word nothing came true"
    assert reach[1] / reach[0] == pytest.approx(0.5), "below the best word nothing was seen"
