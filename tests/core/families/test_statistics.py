"""Counts, means and scatters against numpy on the samples themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.families.statistics import Moments, Statistics, moments_of

OFFSETS = st.sampled_from([0.0, 1.0, -1e6, 1e12, 1e15])
SAMPLES = st.integers(0, 2**32 - 1).map(np.random.default_rng)
SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=6)
DIAGONAL = pytest.mark.parametrize("diagonal", [False, True])
NONE = np.zeros(3)


def brute(X: np.ndarray, weight: np.ndarray, diagonal: bool) -> np.ndarray:
    off = X - np.average(X, axis=0, weights=weight)
    scatter = (weight[:, None] * off).T @ off
    return np.diag(scatter) if diagonal else scatter


def assert_close(
    moments: Moments, at: int, X: np.ndarray, weight: np.ndarray | None = None, *, gone: float = 0.0
) -> None:
    """To the last bits of values far from zero, and of the spread; gone is how far off a removed sample lay."""
    weight = np.ones(len(X)) if weight is None else weight
    assert moments.count[at] == pytest.approx(weight.sum(), rel=1e-12)
    if len(X):
        rounding = 1e-15 * np.abs(X).max()
        spread = np.abs(X - X.mean(0)).max() + 8 * rounding + gone
        mean = np.average(X, axis=0, weights=weight)
        assert np.abs(moments.mean[at] - mean).max() <= 1e-12 + 8 * rounding + 1e-14 * spread
        error = np.abs(moments.scatter[at] - brute(X, weight, moments.scatter.ndim == 2)).max()
        assert error <= 1e-12 * len(X) + 20 * len(X) * rounding * spread + 1e-12 * len(X) * spread**2


def all_of(statistics: Statistics) -> Moments:
    return statistics.of(np.arange(len(statistics.count)))


@DIAGONAL
@settings(deadline=None)
@given(SAMPLES, OFFSETS, SIZES)
def test_moments_of_runs_are_those_of_their_rows(diagonal, rng, offset, sizes):
    X, weight = offset + rng.normal(size=(sum(sizes), 3)), rng.uniform(0.1, 2.0, sum(sizes))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    moments = moments_of(X, np.zeros_like(X), weight, starts, diagonal=diagonal)
    for k, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        assert_close(moments, k, X[start : start + size], weight[start : start + size])


@DIAGONAL
@settings(deadline=None)
@given(SAMPLES, OFFSETS, SIZES)
def test_pooled_groups_are_the_moments_of_all_their_rows(diagonal, rng, offset, sizes):
    """A group may be part of several unions, as a round's samples are of every node above them."""
    X, weight = offset + rng.normal(size=(sum(sizes), 3)), rng.uniform(0.1, 2.0, sum(sizes))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    moments = moments_of(X, np.zeros_like(X), weight, starts, diagonal=diagonal)
    unions = [sorted(rng.choice(len(sizes), rng.integers(1, len(sizes) + 1), replace=False)) for _ in range(4)]
    first = np.concatenate([[0], np.cumsum([len(u) for u in unions])[:-1]])
    pooled = moments.pooled(np.concatenate(unions).astype(int), first)
    group = np.repeat(np.arange(len(sizes)), sizes)
    for k, union in enumerate(unions):
        rows = np.isin(group, union)
        assert_close(pooled, k, X[rows], weight[rows])


@DIAGONAL
@settings(deadline=None)
@given(SAMPLES, OFFSETS, SIZES)
def test_merging_rounds_equals_numpy_on_all(diagonal, rng, offset, sizes):
    X, weight = offset + rng.normal(size=(sum(sizes), 3)), rng.uniform(0.1, 2.0, sum(sizes))
    statistics = Statistics(2, 3, diagonal=diagonal)
    for rows in np.split(np.arange(len(X)), np.cumsum(sizes)[:-1]):
        part = moments_of(X[rows], np.zeros((len(rows), 3)), weight[rows], np.zeros(1, int), diagonal=diagonal)
        statistics.merge(np.array([1]), part)
    assert_close(all_of(statistics), 1, X, weight)
    assert not statistics.count[0]


@DIAGONAL
@settings(deadline=None)
@given(SAMPLES, OFFSETS, st.integers(1, 12), st.floats(0.01, 1.0))
def test_remove_is_the_inverse_of_insert(diagonal, rng, offset, n, weight):
    X, x, spread = offset + rng.normal(size=(n, 3)), offset + 5 * rng.normal(size=3), rng.random(3)
    statistics, cells = Statistics(2, 3, diagonal=diagonal), np.array([1])
    for row in X:
        statistics.insert(np.array([0, 1]), row, NONE)
    statistics.insert(cells, x, spread, weight)
    assert statistics.count.tolist() == [n, n + weight]
    statistics.remove(cells, x, spread, weight)
    gone = np.abs(x - X.mean(0)).max()
    assert_close(all_of(statistics), 0, X)
    assert_close(all_of(statistics), 1, X, gone=gone)


@DIAGONAL
@settings(deadline=None)
@given(SAMPLES, st.lists(st.floats(0.3, 1.0), min_size=1, max_size=8))
def test_fading_is_a_smaller_weight_and_a_faded_sample_comes_out_by_its_rest(diagonal, rng, factors):
    X = 3 + rng.normal(size=(len(factors) + 1, 3))
    statistics, cell = Statistics(1, 3, diagonal=diagonal), np.array([0])
    statistics.insert(cell, X[0], NONE)
    for x, factor in zip(X[1:], factors, strict=True):
        statistics.fade(factor)
        statistics.insert(cell, x, NONE)
    weight = np.cumprod([1.0, *factors[::-1]])[::-1]
    assert_close(all_of(statistics), 0, X, weight)
    statistics.remove(cell, X[0], NONE, weight[0])
    assert_close(all_of(statistics), 0, X[1:], weight[1:], gone=3.0)


@DIAGONAL
@pytest.mark.parametrize("weight", [1.0, 0.5 ** (1000 / 7)])
def test_removing_the_last_sample_leaves_nothing(diagonal, weight):
    """Faded weights do not cancel to the last bit; what stayed read as 1e-16 samples with a mean of their own."""
    statistics, x = Statistics(1, 2, diagonal=diagonal), np.array([1e12, 0.1])
    cell, spread = np.array([0]), np.array([0.1, 0.0])
    statistics.insert(cell, x, spread)
    for factor in np.full(1000, weight ** (1 / 1000)):
        statistics.fade(float(factor))
    statistics.remove(cell, x, spread, weight)
    assert not statistics.count.any()
    assert not statistics.mean.any()
    assert not statistics.scatter.any()


@given(SAMPLES)
def test_the_spread_of_imputed_values_adds_to_the_variance(rng):
    X, spread, weight = rng.normal(size=(6, 2)), rng.random((6, 2)), rng.random(6) + 0.1
    start = np.zeros(1, int)
    full, diagonal = (moments_of(X, spread, weight, start, diagonal=d).scatter[0] for d in (False, True))
    assert np.allclose(full, brute(X, weight, False) + np.diag(weight @ spread))
    assert np.allclose(diagonal, brute(X, weight, True) + weight @ spread)


@DIAGONAL
def test_equal_samples_have_no_negative_variance(diagonal):
    """Rounding of 0.1 summed many times read as a variance below zero, whose root is NaN."""
    statistics, cell = Statistics(1, 1, diagonal=diagonal), np.array([0])
    for x in (0.1, 0.1, 0.3, 0.1, 1e9 + 0.1):
        for _ in range(7):
            statistics.insert(cell, np.array([x]), np.zeros(1))
    for x in (0.3, 1e9 + 0.1):
        for _ in range(7):
            statistics.remove(cell, np.array([x]), np.zeros(1))
    assert statistics.scatter.min() >= 0


@DIAGONAL
def test_a_group_of_no_samples_changes_nothing(diagonal):
    statistics, cell = Statistics(1, 3, diagonal=diagonal), np.array([0])
    nothing = Statistics(1, 3, diagonal=diagonal).of(cell)
    statistics.merge(cell, nothing)
    assert not statistics.count.any()
    statistics.insert(cell, np.ones(3), NONE)
    statistics.merge(cell, nothing)
    assert (statistics.count[0], statistics.mean[0].tolist()) == (1.0, [1.0] * 3)
