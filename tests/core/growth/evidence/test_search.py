"""Where the tree is cut: the schedule, the 2-means, and the search for hyperplanes among recent samples."""

import itertools
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.growth.evidence.screening import Screen
from core.growth.evidence.search import Hyperplanes, best_hyperplane
from core.growth.schedule.dates import next_split, splits_due
from core.growth.schedule.two_means import TwoMeans
from core.tree.subspaces import SubspaceTree

SEEDS = st.integers(0, 2**32 - 1)

# the schedule


@pytest.mark.parametrize("beta", [1.05, 1.3, 2.0, 3.8, 1000.0])
def test_splits_fall_due_at_the_powers_of_beta_however_rounds_cut_them(beta):
    """A beta that is no whole number never hits beta^k: the first t at or after it counts, once."""
    points = sorted({ceil(beta**k) for k in range(1, 200 if beta < 10 else 2) if beta**k < 3000})
    assert [t for t in range(1, 3000) if splits_due(beta, t - 1, t)] == points
    assert splits_due(beta, 0, 2999) == len(points)
    cuts = [0, 1, 7, 8, 100, 355, 1000, 2999]
    assert sum(splits_due(beta, a, b) for a, b in itertools.pairwise(cuts)) == len(points)


def test_next_split_is_later_and_the_far_future_is_quick():
    for t in (0, 1, 2, 31, 10**6, 10**15):
        assert next_split(1.05, t) > t


# the paper's 2-means


def moved(*steps: tuple[float, bool]) -> TwoMeans:
    """One node's 2-means after these samples went to these sides."""
    means = TwoMeans(1)
    for x, left in steps:
        means.move(np.ones((1, 1), bool), np.full((1, 1), left), np.array([[x]]), np.ones(1))
    return means


def test_two_means_steps_ties_and_the_way_back():
    means = TwoMeans(1)
    assert means.nearer_left(np.array([[5.0], [-5.0]])).tolist() == [[True], [True]]  # both centroids at 0
    means = moved((4.0, True))
    assert means.centroids()[0].tolist() == [[2.0], [0.0]]  # counts start at one, sums at zero
    assert means.nearer_left(np.array([[1.0], [0.9]])).tolist() == [[True], [False]]
    means.change(np.array([0]), np.array([True]), np.array([4.0]), -1.0)
    assert means.centroids()[0].tolist() == [[0.0], [0.0]]


def test_faded_centroids_stay_where_they_are_and_yield_to_the_new():
    means = moved((4.0, True), (6.0, True))
    before = means.centroids().copy()
    means.fade(0.25)
    assert means.centroids() == pytest.approx(before)
    means.move(np.ones((1, 1), bool), np.ones((1, 1), bool), np.array([[8.0]]), np.ones(1))
    assert means.centroids()[0, 0] == pytest.approx((10 * 0.25 + 8) / (3 * 0.25 + 1))


@given(SEEDS, st.integers(1, 4))
def test_the_hyperplane_is_the_perpendicular_bisector_of_the_centroids(seed, m):
    """The paper's offset takes a normal that is not normalised: its hyperplane misses the midpoint."""
    rng = np.random.default_rng(seed)
    means, held = TwoMeans(m), np.ones((2, 1), bool)
    means.move(held, np.array([[True], [False]]), 1e3 + rng.normal(size=(2, m)), np.ones(2))
    a, b = means.centroids()[0]
    normal, offset = means.hyperplane(0)
    assert np.linalg.norm(normal) == pytest.approx(1)
    assert normal @ (a + b) / 2 == pytest.approx(offset)
    assert normal @ a > offset > normal @ b


def test_the_ratio_falls_with_the_level_and_with_each_split():
    """Read literally the root is split for ever."""
    tree, means = SubspaceTree(1), moved((2.0, True), (-2.0, False))
    assert means.most_separated(tree) == 0
    tree.split(0, np.ones(1), 0.0, 1)
    means.add_pair()
    held = np.array([[False, True, False]] * 2)
    means.move(held, np.array([[False, True, False], [False, False, False]]), np.array([[1.9], [-1.9]]), np.ones(2))
    assert means.most_separated(tree) == 0  # 2 / 2 against 1.9 / 2
    tree.split(0, np.ones(1), 0.5, 1)
    means.add_pair()
    assert means.most_separated(tree) == 1
    assert TwoMeans(1).most_separated(SubspaceTree(1)) is None


# the search


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
@settings(deadline=None, max_examples=40)
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
@settings(deadline=None, max_examples=20)
def test_the_screen_ranks_the_right_cut_first(seed):
    rng = np.random.default_rng(seed)
    part = rng.permutation(60) < 30
    X = rng.normal(size=(60, 2)) + np.where(part, 6.0, -6.0)[:, None]
    masks = np.stack([part, rng.permutation(part), rng.permutation(part), ~part], axis=1)
    for diagonal in (False, True):
        values = Screen(X, np.full(2, 0.5), 1e-4, diagonal=diagonal)(masks)
        assert values[0] > values[1:3].max() + 10
        assert values[0] == pytest.approx(values[3])
