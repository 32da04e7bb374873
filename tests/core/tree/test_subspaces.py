"""Hyperplanes, membership, and pairs that come and go, against the plain walk down from the root."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import InvalidSnapshot
from core.tree.subspaces import Pair, SubspaceTree
from tests.effort import tries

SEEDS = st.integers(0, 2**32 - 1)


def plane(rng: np.random.Generator, m: int) -> tuple[np.ndarray, float]:
    normal = rng.normal(size=m)
    return normal / np.linalg.norm(normal), float(rng.normal())


def grown_tree(seed: int, splits: int, m: int = 2, *, twice: bool = True) -> SubspaceTree:
    """Random cuts, of leaves only unless a node may be cut twice."""
    rng = np.random.default_rng(seed)
    tree = SubspaceTree(m)
    for k in range(splits):
        nodes = np.arange(tree.n_nodes) if twice else np.flatnonzero(tree.leaf)
        tree.split(int(rng.choice(nodes)), *plane(rng, m), since=10 * k)
    return tree


def holds(tree: SubspaceTree, node: int, z: np.ndarray) -> bool:
    if node == 0:
        return True
    pair = tree.pair_of(node)
    above = tree.normal[pair.cut] @ z >= tree.offset[pair.cut]
    return bool(above == (node == pair.left)) and holds(tree, pair.node, z)


def assert_sound(tree: SubspaceTree, seed: int) -> None:
    """Membership is the walk, each pair parts its node, and all that is derived agrees."""
    Z = 2 * np.random.default_rng(seed).normal(size=(20, tree.normal.shape[1]))
    held = tree.membership(Z)
    assert held.tolist() == [[holds(tree, node, z) for node in range(tree.n_nodes)] for z in Z]
    for pair in tree.pairs():
        assert np.array_equal(held[:, pair.children].sum(1), held[:, pair.node])
        assert tree.parent[pair.children].tolist() == [pair.node] * 2
        assert tree.level[pair.children].tolist() == [tree.level[pair.node] + 1] * 2
        assert tree.pair_of(pair.left) == tree.pair_of(pair.right) == pair
    cut = [pair.node for pair in tree.pairs()]
    assert tree.leaf.tolist() == [node not in cut for node in range(tree.n_nodes)]
    assert tree.times_split.tolist() == [cut.count(node) for node in range(tree.n_nodes)]
    for node in range(tree.n_nodes):
        path = {node}
        while (at := int(tree.parent[min(path, key=lambda n: tree.level[n])])) >= 0:
            path.add(at)
        assert set(np.flatnonzero(tree.ancestor[node]).tolist()) == path


@settings(deadline=None, max_examples=tries(40))
@given(SEEDS, st.integers(0, 12), st.integers(1, 5))
def test_membership_is_the_walk_from_the_root(seed, splits, m):
    assert_sound(grown_tree(seed, splits, m), seed)


def test_a_pair_knows_its_children_and_ties_go_left():
    tree = SubspaceTree(1)
    pair = tree.split(0, np.ones(1), 3.0, since=7)
    assert (pair, pair.left, pair.right, pair.children.tolist()) == (Pair(0, 0), 1, 2, [1, 2])
    assert tree.membership(np.array([[3.0], [2.999]])).tolist() == [[True, True, False], [True, False, True]]
    assert tree.since.tolist() == [0, 7, 7]


@settings(deadline=None, max_examples=tries(40))
@given(SEEDS, st.integers(1, 10))
def test_a_free_pair_gives_its_numbers_to_another_cut(seed, splits):
    """At the cap two leaves return into their node, and another leaf is cut in their place."""
    tree, rng = grown_tree(seed, splits, twice=False), np.random.default_rng(seed)
    n = tree.n_nodes
    free = next(p for p in tree.pairs()[::-1] if tree.leaf[p.children].all())
    leaves = [leaf for leaf in np.flatnonzero(tree.leaf).tolist() if leaf not in free.children]
    where = plane(rng, 2)
    target = int(rng.choice([*leaves, free.node]))
    new = tree.split(target, *where, since=999, free=free)
    assert (new.cut, new.node, tree.n_nodes) == (free.cut, target, n)
    assert tree.since[new.children].tolist() == [999, 999]
    assert np.array_equal(tree.normal[new.cut], where[0])
    assert_sound(tree, seed)


@settings(deadline=None, max_examples=tries(40))
@given(SEEDS, st.integers(2, 10))
def test_lift_puts_a_child_and_all_below_it_in_its_parents_place(seed, splits):
    tree, rng = grown_tree(seed, splits, twice=False), np.random.default_rng(seed)
    pairs = [p for p in tree.pairs() if p.node != 0 and tree.leaf[p.children].any()]
    if not pairs:
        return
    pair = pairs[int(rng.integers(len(pairs)))]
    idle = int(pair.children[tree.leaf[pair.children]][0])
    child = pair.left + pair.right - idle
    below = [q for q in tree.pairs() if q.node == child]
    subtree = np.flatnonzero(tree.ancestor[:, child])
    tree.lift(pair, child, since=500)
    target = int(rng.choice([n for n in np.flatnonzero(tree.leaf) if n not in pair.children] or [0]))
    tree.split(target if below or target != pair.node else pair.node, *plane(rng, 2), since=600, free=pair)
    assert_sound(tree, seed)
    for q in below:  # the child's own cut is its former parent's now
        assert tree.cut_node[q.cut] == pair.node
    for node in [pair.node, *(n for n in subtree if n not in (child, *pair.children))]:
        assert tree.since[node] == 500


@settings(deadline=None, max_examples=tries(20))
@given(SEEDS, st.integers(0, 12), st.integers(0, 130))
def test_a_sample_was_counted_where_it_is_held_since_then(seed, splits, ordinal):
    tree = grown_tree(seed, splits)
    z = np.random.default_rng(seed).normal(size=2)
    expected = [node for node in range(tree.n_nodes) if holds(tree, node, z) and tree.since[node] <= ordinal]
    assert tree.counting(z, ordinal).tolist() == expected


@given(SEEDS)
def test_a_sample_falls_on_the_same_side_alone_and_in_company(seed):
    """A BLAS product rounds by its shape; a label hours later must find the node that counted its sample."""
    tree = grown_tree(seed, 6, 7)
    Z = np.random.default_rng(seed).normal(size=(50, 7))
    tree.offset[:] = Z[:6] @ tree.normal.T @ np.eye(6)[0]  # hyperplanes through samples, to rounding
    held = tree.membership(Z)
    assert np.array_equal(held, np.concatenate([tree.membership(z[None]) for z in Z]))
    assert np.array_equal(held[::-1], tree.membership(Z[::-1]))


@settings(deadline=None, max_examples=tries(20))
@given(SEEDS, st.integers(1, 6))
def test_a_state_comes_back_and_a_cycle_does_not(seed, splits):
    tree = grown_tree(seed, splits)
    state = {name: array.copy() for name, array in tree.state().items()}
    twin = SubspaceTree(2)
    twin.load(state)
    Z = np.random.default_rng(0).normal(size=(20, 2))
    assert np.array_equal(twin.membership(Z), tree.membership(Z))
    assert np.array_equal(twin.since, tree.since)
    for wrong in (2, 1, -1, 2 * splits + 1, 10**9):
        broken = {name: array.copy() for name, array in state.items()}
        broken["tree_cut_node"][0] = wrong
        if wrong > 2 and wrong <= 2 * splits:
            continue
        with pytest.raises(InvalidSnapshot):
            SubspaceTree(2).check(broken)
