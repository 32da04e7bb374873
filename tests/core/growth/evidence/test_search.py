"""The search for hyperplanes among recent samples, and how they are ranked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.growth.evidence.screening import Screen
from core.growth.evidence.search import Hyperplanes, best_hyperplane
from tests.effort import tries

SEEDS = st.integers(0, 2**32 - 1)


def search(X: np.ndarray, *, diagonal: bool = False, least: int | None = None) -> Hyperplanes | None:
    covariance = np.cov(X.T).reshape(X.shape[1], X.shape[1])
    variance = np.diag(covariance)
    screen = Screen(X, 0.5 * variance, 1e-4, diagonal=diagonal)
    return best_hyperplane(X, variance if diagonal else covariance, least or X.shape[1] + 1, screen)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("m", [1, 2, 5, 20])
@settings(deadline=None, max_examples=8)
@given(SEEDS, st.floats(0.15, 0.85))
def test_the_search_finds_the_cut_between_two_clusters(m, diagonal, seed, share):
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=m)
    axis /= np.linalg.norm(axis)
    part = rng.permutation(100) < 100 * share
    X = rng.normal(size=(100, m)) + np.where(part, 8.0, -8.0)[:, None] * axis
    if min(part.sum(), 100 - part.sum()) <= m:
        return
    found = search(X, diagonal=diagonal)
    assert found is not None
    left = found.left(X)[:, 0]
    assert max((left == part).mean(), (left != part).mean()) >= (0.98 if m < 20 else 0.9)


def test_clusters_side_by_side_along_their_narrow_axis_are_parted_by_the_refinement():
    """The axes of most variance run along two parallel sticks; Fisher's direction runs across."""
    rng = np.random.default_rng(0)
    part = rng.random(200) < 0.5
    X = np.column_stack([20 * rng.normal(size=200), np.where(part, 1.5, -1.5) + 0.2 * rng.normal(size=200)])
    left = search(X).left(X)[:, 0]
    assert max((left == part).mean(), (left != part).mean()) > 0.98


@given(SEEDS, st.integers(1, 4), st.integers(0, 3))
@settings(deadline=None, max_examples=tries(40))
def test_what_is_found_is_a_unit_normal_with_enough_on_both_sides(seed, m, rounding):
    """Also among duplicates, where quantiles fall between equal values."""
    X = np.round(np.random.default_rng(seed).normal(size=(40, m)), rounding)
    found = search(X)
    if found is not None:
        assert np.linalg.norm(found.normal[0]) == pytest.approx(1)
        assert np.isfinite(found.offset).all()
        assert m + 1 <= found.left(X).sum() <= 40 - m - 1


@pytest.mark.parametrize(
    "X",
    [
        np.full((30, 2), 3.0),
        np.repeat([[0.0, 0.0], [1.0, 1.0]], [29, 1], axis=0),
        np.tile([[1e-300, 5.0]], (30, 1)),
    ],
)
@pytest.mark.parametrize("diagonal", [False, True])
def test_equal_samples_are_not_cut(X, diagonal):
    """A hyperplane through a pile of copies left a child empty, or had no direction."""
    screen = Screen(X, np.full(2, 0.5), 1e-4, diagonal=diagonal)
    covariance = np.full(2, 1e-4) if diagonal else 1e-4 * np.eye(2)
    found = best_hyperplane(X, covariance, 3, screen)
    assert found is None or 3 <= found.left(X).sum() <= 27


@given(SEEDS)
@settings(deadline=None, max_examples=tries(20))
def test_the_screen_ranks_the_right_cut_first(seed):
    rng = np.random.default_rng(seed)
    part = rng.permutation(60) < 30
    X = rng.normal(size=(60, 2)) + np.where(part, 6.0, -6.0)[:, None]
    masks = np.stack([part, rng.permutation(part), rng.permutation(part), ~part], axis=1)
    for diagonal in (False, True):
        values = Screen(X, np.full(2, 0.5), 1e-4, diagonal=diagonal)(masks)
        assert values[0] > values[1:3].max() + 10
        assert values[0] == pytest.approx(values[3])
