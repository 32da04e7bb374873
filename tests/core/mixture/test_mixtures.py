"""Every rule: weights on the simplex, whatever the densities; splits and merges share them out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mixture import MIXTURES
from tests.core.mixture.trees import DENSITIES, cut, learn, three


@pytest.mark.parametrize("name", sorted(MIXTURES))
@given(st.lists(DENSITIES, min_size=1, max_size=6))
def test_weights_stay_on_the_simplex(name, rounds):
    mixture = three(name)
    for log_density in rounds:
        learn(mixture, log_density)
        assert mixture.weights.sum() == pytest.approx(1)
        assert (mixture.weights > 0).all()
    twin = MIXTURES[name](mixture.tree)
    twin.restore(mixture.running, mixture.weights.copy())
    for each in (mixture, twin):
        learn(each, rounds[0])
    assert np.array_equal(mixture.weights, twin.weights)


@pytest.mark.parametrize("name", sorted(MIXTURES))
def test_weight_goes_to_the_better_node_and_never_all_of_it(name):
    """EG with a fixed rate and unbounded ratios ran to one node."""
    mixture = three(name)
    for _ in range(300):
        learn(mixture, np.log([[0.01, 0.3, 0.01]]))
    assert mixture.weights[1] > 0.5
    for _ in range(3000):
        learn(mixture, np.log([[0.01, 0.01, 0.3]]))
    assert mixture.weights[2] > 0.5


def test_split_shares_out_the_nodes_weight():
    mixture = three("soft_bayes")
    assert mixture.weights == pytest.approx([0.5, 0.2, 0.3])
    cut(mixture, 2, 0.2, 0.25)
    assert mixture.weights == pytest.approx([0.5, 0.2, 0.06, 0.06, 0.18])


@pytest.mark.parametrize("name", ["eg", "soft_bayes"])
def test_two_leaves_give_their_weight_back(name):
    mixture = three(name)
    pair = cut(mixture, 2, 0.2, 0.25)
    mixture.merge(pair)
    assert mixture.weights == pytest.approx([0.5, 0.2, 0.3, 0.0, 0.0])
