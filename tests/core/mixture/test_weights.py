"""Weights: on the simplex whatever the densities, and moved as the formulas say."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mixture import MIXTURES, Mixture
from core.mixture.base import MEMORY
from core.mixture.exponentiated_gradient import RATIO_CAP
from core.mixture.learning_rates import SOFT_BAYES_RATE
from core.mixture.log_sum import log_mixture
from core.mixture.tree_odds import MOST_EVIDENCE, MOST_KEEP_ODDS, START_KEEP_ODDS, START_SHARE_COUNT
from core.tree.subspaces import Pair, SubspaceTree

NORMAL = np.ones(1)

DENSITIES = st.lists(
    st.lists(st.floats(-1e200, 700) | st.floats(-5, 5), min_size=3, max_size=3), min_size=1, max_size=8
).map(np.array)


def cut(mixture: Mixture, node: int, kept: float = 0.5, left_share: float = 0.4) -> Pair:
    """Cut a node of the mixture's tree."""
    pair = mixture._tree.split(node, NORMAL, float(mixture._tree.n_nodes), since=1)
    mixture.split(pair, kept, left_share)
    return pair


def three(name: str) -> Mixture:
    mixture = MIXTURES[name](SubspaceTree(1))
    cut(mixture, 0)
    return mixture


def learn(mixture: Mixture, log_density: np.ndarray) -> None:
    mixture.learn(mixture.shares(np.asarray(log_density)))


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
        learn(mixture, log_density)
        assert mixture.weights.sum() == pytest.approx(1)
        assert (mixture.weights > 0).all()
    twin = MIXTURES[name](mixture._tree)
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


def test_one_step_of_exponentiated_gradient_is_theorem_1s():
    mixture = three("eg")
    f, alpha = np.array([0.2, 0.9, 0.001]), mixture.weights.copy()
    p = f @ alpha
    learn(mixture, np.log(f)[None])
    ratio = np.minimum(f / p, RATIO_CAP)
    R, A, T, complexity = max(1.0, ratio.max()), max(-log(p), 1e-3), 1, sqrt(log(3))
    theta = 2 * complexity / (R * sqrt(2 * A * T) + R**2 * complexity)
    moved = alpha * np.exp(theta * ratio)
    assert mixture.weights == pytest.approx(moved / moved.sum())


def test_one_step_of_soft_bayes():
    mixture = three("soft_bayes")
    for t in range(200):
        f, alpha = np.array([0.2, 0.9, 0.001 * t]) + 1e-9, mixture.weights.copy()
        learn(mixture, np.log(f)[None])
        rate = max(SOFT_BAYES_RATE, 1 / (t + 2))
        moved = alpha * ((1 - rate) + rate * f / (f @ alpha))
        assert mixture.weights == pytest.approx(moved / moved.sum())


@pytest.mark.parametrize("name", ["eg", "soft_bayes"])
def test_two_leaves_give_their_weight_back(name):
    mixture = three(name)
    pair = cut(mixture, 2, 0.2, 0.25)
    mixture.merge(pair)
    assert mixture.weights == pytest.approx([0.5, 0.2, 0.3, 0.0, 0.0])


# weights along the tree


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
