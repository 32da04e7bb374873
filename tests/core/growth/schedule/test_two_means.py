"""The sequential 2-means: steps, ties, fading, hyperplanes, and which node it cuts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.growth.schedule.two_means import TwoMeans
from core.tree.subspaces import SubspaceTree

SEEDS = st.integers(0, 2**32 - 1)


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
