"""Hyperplanes, membership and 2-means against the plain walk down from the root."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import InvalidSnapshot
from core.tree import LEFT, RIGHT, SubspaceTree


def grown_tree(seed: int, splits: int, m: int = 2) -> SubspaceTree:
    rng = np.random.default_rng(seed)
    tree = SubspaceTree(m)
    for _ in range(splits):
        node = int(rng.integers(tree.n_nodes))
        tree.seed_centroids(node, rng.normal(size=m), rng.normal(size=m))
        tree.split(node, 1)
    return tree


def holds(tree: SubspaceTree, node: int, z: np.ndarray) -> bool:
    if node == 0:
        return True
    normal, offset = tree.normal[tree.cut[node]], tree.offset[tree.cut[node]]
    side = LEFT if normal @ z >= offset else RIGHT
    return bool(tree.side[node] == side) and holds(tree, int(tree.parent[node]), z)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 12), st.integers(1, 5), st.integers(1, 40))
def test_membership_is_the_walk_from_the_root(seed, splits, m, n):
    tree = grown_tree(seed, splits, m)
    Z = np.random.default_rng(seed).normal(size=(n, m)) * 2
    held = tree.locate(Z)[0]
    assert held.tolist() == [[holds(tree, node, z) for node in range(tree.n_nodes)] for z in Z]
    for node in set(tree.parent[1:].tolist()):
        for k in set(tree.cut[tree.parent == node].tolist()):
            children = np.flatnonzero(tree.cut == k)
            assert np.array_equal(held[:, children].sum(1), held[:, node])


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_the_hyperplane_is_the_perpendicular_bisector_of_the_centroids(seed, m):
    """The paper's offset takes a normal that is not normalised: its hyperplane misses the midpoint."""
    tree, rng = SubspaceTree(m), np.random.default_rng(seed)
    a, b = 1e3 + rng.normal(size=(2, m))
    tree.seed_centroids(0, a, b)
    children = tree.split(0, 3)
    assert np.linalg.norm(tree.normal[0]) == pytest.approx(1)
    assert tree.normal[0] @ (a + b) / 2 == pytest.approx(tree.offset[0])
    assert tree.locate(np.stack([a, b]))[0].tolist() == [[True, True, False], [True, False, True]]
    assert (children.left, children.right, tree.born[1]) == (1, 2, 3)


def test_two_means_steps_ties_and_the_way_back():
    tree = SubspaceTree(1)
    assert tree.locate(np.array([[5.0], [-5.0]]))[1].tolist() == [[True], [True]]  # both centroids at 0
    tree.move_centroids(np.ones((1, 1), bool), np.ones((1, 1), bool), np.array([[4.0]]))
    assert tree.centroids()[0].tolist() == [[2.0], [0.0]]  # counts start at one, sums at zero
    assert tree.locate(np.array([[1.0], [0.9]]))[1].tolist() == [[True], [False]]
    tree.change_centroids(np.array([0]), np.array([True]), np.array([4.0]), -1)
    assert tree.centroids()[0].tolist() == [[0.0], [0.0]]


def test_the_ratio_falls_with_the_level_and_with_each_split():
    """Read literally the root is split for ever."""
    tree = SubspaceTree(1)
    tree.seed_centroids(0, np.array([1.0]), np.array([-1.0]))
    assert tree.separation().tolist() == [2.0]
    tree.split(0, 1)
    tree.seed_centroids(1, np.array([1.0]), np.array([-1.0]))
    assert tree.separation().tolist() == [1.0, 1.0, 0.0]
    tree.split(0, 1)
    assert tree.separation()[0] == 0.5
    assert tree.leaves().tolist() == [False, True, True, True, True]


@given(st.integers(0, 2**32 - 1), st.integers(0, 6))
def test_a_state_comes_back_and_a_cycle_does_not(seed, splits):
    tree = grown_tree(seed, splits)
    state = {f"tree_{name}": array.copy() for name, array in tree.state().items()}
    twin = SubspaceTree(2)
    twin.load(state)
    Z = np.random.default_rng(0).normal(size=(20, 2))
    assert np.array_equal(twin.locate(Z)[0], tree.locate(Z)[0])
    if splits:
        state["tree_parent"][1:3] = 2
        with pytest.raises(InvalidSnapshot):
            SubspaceTree(2).load(state)
