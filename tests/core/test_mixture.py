"""Weights: on the simplex whatever the densities, and moved as the formulas say."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mixture import MIXTURES, RATIO_CAP, SOFT_BAYES_RATE, log_mixture

DENSITIES = st.lists(
    st.lists(st.floats(-1e200, 700) | st.floats(-5, 5), min_size=3, max_size=3), min_size=1, max_size=8
).map(np.array)


def three(name: str):
    mixture = MIXTURES[name]()
    mixture.split(0, 0.5, 0.4)
    return mixture


@given(DENSITIES)
def test_log_mixture_lies_between_its_parts(log_density):
    """Log-sum-exp of all minus infinities gave NaN, and without the shift a tight cluster overflowed."""
    log_p = log_mixture(log_density, np.array([0.5, 0.3, 0.2]))
    assert np.isfinite(log_p).all()
    assert (log_p <= log_density.max(1) + 1e-12).all()
    assert (log_p >= log_density.max(1) + log(0.2) - 1e-9 * np.abs(log_density.max(1))).all()


@pytest.mark.parametrize("name", sorted(MIXTURES))
@given(st.lists(DENSITIES, min_size=1, max_size=6))
def test_weights_stay_on_the_simplex(name, rounds):
    mixture = three(name)
    for log_density in rounds:
        mixture.learn(log_density)
        assert mixture.weights.sum() == pytest.approx(1)
        assert (mixture.weights > 0).all()
    twin = MIXTURES[name]()
    twin.weights, twin.running = mixture.weights.copy(), mixture.running
    for each in (mixture, twin):
        each.learn(rounds[0])
    assert np.array_equal(mixture.weights, twin.weights)


@pytest.mark.parametrize("name", sorted(MIXTURES))
def test_weight_goes_to_the_better_node_and_never_all_of_it(name):
    """EG with a fixed rate and unbounded ratios ran to one node."""
    mixture = three(name)
    for _ in range(300):
        mixture.learn(np.log([[0.1, 0.3, 0.01]]))
    assert mixture.weights[1] > 0.5
    for _ in range(3000):
        mixture.learn(np.log([[0.1, 0.01, 0.3]]))
    assert mixture.weights[2] > 0.5


def test_split_shares_out_the_nodes_weight():
    mixture = three("soft_bayes")
    assert mixture.weights == pytest.approx([0.5, 0.2, 0.3])
    mixture.split(2, 0.2, 0.25)
    assert mixture.weights == pytest.approx([0.5, 0.2, 0.06, 0.06, 0.18])


def test_one_step_of_exponentiated_gradient_is_theorem_1s():
    mixture = three("eg")
    f, alpha = np.array([0.2, 0.9, 0.001]), mixture.weights.copy()
    p = f @ alpha
    mixture.learn(np.log(f)[None])
    ratio = np.minimum(f / p, RATIO_CAP)
    R, A, T, complexity = max(1.0, ratio.max()), max(-log(p), 1e-3), 1, sqrt(log(3))
    theta = 2 * complexity / (R * sqrt(2 * A * T) + R**2 * complexity)
    moved = alpha * np.exp(theta * ratio)
    assert mixture.weights == pytest.approx(moved / moved.sum())


def test_one_step_of_soft_bayes():
    mixture = three("soft_bayes")
    for t in range(200):
        f, alpha = np.array([0.2, 0.9, 0.001 * t]) + 1e-9, mixture.weights.copy()
        mixture.learn(np.log(f)[None])
        rate = max(SOFT_BAYES_RATE, 1 / (t + 2))
        moved = alpha * ((1 - rate) + rate * f / (f @ alpha))
        assert mixture.weights == pytest.approx(moved / moved.sum())
