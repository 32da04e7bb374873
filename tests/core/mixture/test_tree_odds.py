"""Odds along the tree: weights are products along paths, one sample decides nothing, broad nodes never die."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mixture import MIXTURES
from core.mixture.base import MEMORY
from core.mixture.tree_odds import MOST_EVIDENCE, MOST_KEEP_ODDS, START_KEEP_ODDS, START_SHARE_COUNT
from core.tree.subspaces import SubspaceTree
from tests.core.mixture.trees import DENSITIES, cut, learn, three


def by_hand(tree: SubspaceTree, odds: np.ndarray, share: np.ndarray) -> list[float]:
    """Each node's alpha: the product of what is passed on along the path to it, times what it keeps."""
    weights = []
    for node in range(tree.n_nodes):
        weight, at = (1.0 if tree.leaf[node] else 1 / (1 + np.exp(-odds[node]))), node
        while at:
            pair = tree.pair_of(at)
            weight *= share[at] / share[pair.children].sum() / (1 + np.exp(odds[pair.node]))
            at = pair.node
        weights.append(weight)
    return weights


@given(st.lists(st.integers(0, 100), min_size=1, max_size=7), st.lists(DENSITIES, max_size=4))
def test_weights_are_products_along_the_paths_and_sum_to_one(cuts, rounds):
    tree = SubspaceTree(1)
    mixture = MIXTURES["tree"](tree)
    for k, chosen in enumerate(cuts):
        leaves = np.flatnonzero(tree.leaf)
        cut(mixture, int(leaves[chosen % len(leaves)]), left_share=0.1 + 0.1 * k)
        for log_density in rounds:
            learn(mixture, np.resize(log_density, (len(log_density), tree.n_nodes)))
        odds, share = np.split(mixture.running, 2)
        assert mixture.weights == pytest.approx(by_hand(tree, odds, share))
        assert mixture.weights.sum() == pytest.approx(1)
        assert (mixture.weights > 0).all()


def test_a_new_pair_starts_at_the_start_odds_with_shares_by_count():
    mixture = three("tree")
    keep = 1 / (1 + np.exp(-START_KEEP_ODDS))
    assert mixture.weights == pytest.approx([keep, 0.4 * (1 - keep), 0.6 * (1 - keep)])


def test_one_step_of_the_odds_and_shares():
    """The odds of keeping move by log f_i / f_below, times the share that reaches the node."""
    mixture = three("tree")
    f, alpha = np.array([0.2, 0.5, 0.1]), mixture.weights.copy()
    learn(mixture, np.log(f)[None])
    own = f * alpha / (f @ alpha)
    below = f[1:] @ alpha[1:] / alpha[1:].sum()
    odds, share = np.split(mixture.running, 2)
    assert odds[0] == pytest.approx(START_KEEP_ODDS + np.log(f[0] / below))
    assert share[1:] == pytest.approx(START_SHARE_COUNT * np.array([0.4, 0.6]) + own[1:])


def test_one_sample_decides_nothing_and_the_background_never_dies():
    """A gross outlier that only one node explains, or ten thousand samples for the leaves."""
    for densities in ([0.0, -1e6, -1e6], [-1e6, 0.0, -1e6]):
        mixture = three("tree")
        learn(mixture, np.array([densities]))
        assert abs(mixture.running[0] - START_KEEP_ODDS) <= MOST_EVIDENCE + 1e-12
    mixture = three("tree")
    cut(mixture, 1)
    for _ in range(200):
        learn(mixture, np.tile([-50.0, -50.0, -50.0, 0.0, 0.0], (50, 1)))
    least = 1 / (1 + np.exp(MOST_KEEP_ODDS))
    assert mixture.weights[0] >= 0.99 * least
    assert mixture.weights[1] >= 0.3 * least
    learn(mixture, np.tile([0.0, -50.0, -50.0, -50.0, -50.0], (20, 1)))  # and comes back at once
    assert mixture.weights[0] > 0.9


def test_shares_remember_so_many_samples():
    mixture = three("tree")
    for _ in range(300):
        learn(mixture, np.tile([-9.0, 0.0, -9.0], (50, 1)))
    assert mixture.running[3:][1:].sum() <= MEMORY + 1e-9
    assert mixture.weights[1] > 0.9
    for _ in range(300):
        learn(mixture, np.tile([-9.0, -9.0, 0.0], (50, 1)))
    assert mixture.weights[2] > 0.9


def test_a_lifted_child_brings_its_odds():
    tree = SubspaceTree(1)
    mixture = MIXTURES["tree"](tree)
    outer = cut(mixture, 0)
    middle = cut(mixture, outer.left)
    inner = cut(mixture, middle.left)
    learn(mixture, np.array([[0.0, 1.0, 2.0, 5.0, 0.0, 0.0, 0.0]]))
    odds = mixture.running[: tree.n_nodes].copy()
    mixture.lift(middle, middle.left)
    assert mixture.running[middle.node] == odds[inner.node]
