"""Counts, means and scatters against numpy on the samples themselves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.statistics import Statistics

OFFSETS = st.sampled_from([0.0, 1.0, -1e6, 1e12, 1e15])
SAMPLES = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def brute(X: np.ndarray, diagonal: bool) -> np.ndarray:
    deviations = X - X.mean(0)
    scatter = deviations.T @ deviations
    return np.diag(scatter) if diagonal else scatter


def assert_close(statistics: Statistics, cell: int, X: np.ndarray, *, gone: float = 0.0) -> None:
    """To the last bits of values far from zero, and of the spread; gone is how far off a removed sample lay."""
    size = np.abs(X).max() if len(X) else 0.0
    assert statistics.count[cell] == len(X)
    if len(X):
        rounding = 1e-15 * size
        assert np.abs(statistics.mean[cell] - X.mean(0)).max() <= 1e-12 + 8 * rounding
        spread = np.abs(X - X.mean(0)).max() + 8 * rounding + gone
        error = np.abs(statistics.scatter[cell] - brute(X, statistics.diagonal)).max()
        assert error <= 1e-12 * len(X) + 20 * len(X) * rounding * spread + 1e-12 * len(X) * spread**2


@pytest.mark.parametrize("diagonal", [False, True])
@given(SAMPLES, OFFSETS, st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_adding_groups_equals_numpy_on_all(diagonal, rng, offset, sizes):
    X = offset + rng.normal(size=(sum(sizes), 3))
    held = rng.random((len(X), 4)) < [1.0, 0.5, 0.1, 0.0]
    statistics = Statistics(4, 3, diagonal=diagonal)
    for part, who in zip(np.split(X, np.cumsum(sizes)), np.split(held, np.cumsum(sizes)), strict=True):
        statistics.add(who.astype(float), part)
    for cell in range(4):
        assert_close(statistics, cell, X[held[:, cell]])


@pytest.mark.parametrize("diagonal", [False, True])
@given(SAMPLES, OFFSETS, st.integers(1, 12))
def test_remove_is_the_inverse_of_insert(diagonal, rng, offset, n):
    X, x, spread = offset + rng.normal(size=(n, 3)), offset + 5 * rng.normal(size=3), rng.random(3)
    statistics = Statistics(2, 3, diagonal=diagonal)
    statistics.add(np.ones((n, 2)), X)
    cells = np.array([1])
    statistics.insert(cells, x, spread)
    assert statistics.count.tolist() == [n, n + 1]
    statistics.remove(cells, x, spread)
    gone = np.abs(x - X.mean(0)).max()
    assert_close(statistics, 0, X)
    assert_close(statistics, 1, X, gone=gone)


@pytest.mark.parametrize("diagonal", [False, True])
def test_removing_the_last_sample_leaves_nothing(diagonal):
    statistics, x = Statistics(1, 2, diagonal=diagonal), np.array([1e12, 0.1])
    statistics.insert(np.array([0]), x, np.array([0.1, 0.0]))
    statistics.remove(np.array([0]), x, np.array([0.1, 0.0]))
    assert not statistics.count.any()
    assert not statistics.mean.any()
    assert not statistics.scatter.any()


@given(SAMPLES)
def test_the_spread_of_imputed_values_adds_to_the_variance(rng):
    X, spread = rng.normal(size=(6, 2)), rng.random((6, 2))
    full, diagonal = (Statistics(1, 2, diagonal=d) for d in (False, True))
    for statistics in (full, diagonal):
        statistics.add(np.ones((6, 1)), X, spread)
    assert np.allclose(full.scatter[0], brute(X, False) + np.diag(spread.sum(0)))
    assert np.allclose(diagonal.scatter[0], brute(X, True) + spread.sum(0))


def test_equal_samples_have_no_negative_variance():
    """Rounding of 0.1 summed many times read as a variance below zero, whose root is NaN."""
    for diagonal in (False, True):
        statistics = Statistics(1, 1, diagonal=diagonal)
        for x in (0.1, 0.1, 0.3, 0.1, 1e9 + 0.1):
            statistics.add(np.ones((7, 1)), np.full((7, 1), x))
        for x in (0.3, 1e9 + 0.1):
            for _ in range(7):
                statistics.remove(np.array([0]), np.array([x]), np.zeros(1))
        assert statistics.scatter.min() >= 0


def test_the_principal_axis_is_one_deviation_long_and_signed():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 1)) @ np.array([[-3.0, -4.0]]) + 7
    statistics = Statistics(1, 2, diagonal=False)
    statistics.add(np.ones((4000, 1)), X)
    axis = statistics.principal_axis(0)
    assert axis[1] > 0
    assert np.allclose(axis, np.array([3, 4]) * X[:, 0].std() / 3)
