"""The growing tree: candidates, reservoirs and exact inheritance, and what happens at the cap."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.config import DetectorConfig
from core.density.model import DensityModel
from core.growth.evidence.reservoir import LEAST, LEAST_A_FEATURE, TOTAL, Reservoir
from core.growth.evidence.worth import Worth
from core.mixture import MIXTURES
from core.mixture.learned import LearnedSample
from core.tree.subspaces import SubspaceTree

FAMILIES = pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])


def blobs(n: int, centers: list, seed: int = 0, spread: float = 0.3) -> np.ndarray:
    """Samples of these clusters, in turns at random."""
    rng = np.random.default_rng(seed)
    at = np.array(centers, float)
    return at[rng.integers(len(at), size=n)] + spread * rng.normal(size=(n, at.shape[1]))


def feed(model: DensityModel, X: np.ndarray) -> list[LearnedSample]:
    """Learn samples; their receipts."""
    receipts = []
    while len(X):
        rows = X[: model.room]
        batch = model.evaluate(rows, np.full(len(rows), np.nan))
        for i in range(len(rows)):
            ordinal = model.next_ordinal + i
            one = batch.learned[i], batch.spread[i], batch.left[i]
            receipts.append(LearnedSample(ordinal, float(ordinal), *one))
        model.learn(batch)
        X = X[len(rows) :]
    return receipts


def model_of(m: int = 2, **fields) -> DensityModel:
    return DensityModel(DetectorConfig(n_features=m, scaling="none", **fields))


SQUARE = [[2, 2], [2, -2], [-2, 2], [-2, -2]]


@FAMILIES
@pytest.mark.parametrize("mixture", ["tree", "soft_bayes", "eg"])
@pytest.mark.parametrize("split", ["evidence", "both", "scheduled"])
def test_four_clusters_get_a_leaf_each(family, mixture, split):
    model = model_of(family=family, mixture=mixture, split=split)
    feed(model, blobs(500, SQUARE))
    leaf = model.tree.membership(np.array(SQUARE, float))[:, model.tree.leaf].argmax(1)
    assert len(set(leaf.tolist())) == 4


@pytest.mark.parametrize("m", [1, 2, 6])
@pytest.mark.parametrize("seed", range(3))
def test_one_gaussian_is_not_cut(m, seed):
    """A tree that cuts noise pays for it in every density after; one cut in three streams of 2,000 is borne."""
    model = model_of(m)
    feed(model, np.random.default_rng(seed).normal(size=(2000, m)))
    assert model.tree.n_nodes <= 3


def recounted(model: DensityModel, receipts: list[LearnedSample], void: set[int]) -> None:
    """Each node, and each side of a candidate, holds just what it has counted since its ordinal."""
    tree, growth = model.tree, model.growth
    X = np.array([r.x for r in receipts])
    ordinal = np.array([r.ordinal for r in receipts])
    there = (ordinal <= model.n_learned) & ~np.isin(ordinal, sorted(void))
    held = tree.membership(X) & there[:, None]
    for node in range(tree.n_nodes):
        rows = X[held[:, node] & (ordinal >= tree.since[node])]
        assert model.counts[node] == pytest.approx(len(rows))
        if len(rows):
            assert np.allclose(model.nodes.statistics.mean[node], rows.mean(0), atol=1e-9)
            scatter = (rows - rows.mean(0)).T @ (rows - rows.mean(0))
            assert np.allclose(model.nodes.statistics.scatter[node], scatter, atol=1e-7)
    candidates = growth.candidates
    for leaf in np.flatnonzero(candidates.has).tolist():
        rows = X[held[:, leaf] & (ordinal >= candidates.since[leaf])]
        left = rows @ candidates.normal[leaf] >= candidates.offset[leaf]
        sizes = candidates.sizes(np.array([leaf]))[0]
        assert sizes == pytest.approx([left.sum(), (~left).sum()])
    recent = growth.recent
    for leaf in np.flatnonzero(tree.leaf).tolist():
        rows = ordinal[held[:, leaf] & (ordinal >= recent.window[leaf])]
        assert recent.ordinal[recent.of(leaf)].tolist() == rows.tolist()


@pytest.mark.parametrize("n", [150, 700, 2500])
def test_nodes_candidates_and_reservoirs_hold_what_was_counted_since(n):
    """Also after samples went and came back, of before and after the cuts."""
    model = model_of()
    receipts = feed(model, blobs(n, [*SQUARE, [0, 0]]))
    model.end_round()
    assert model.tree.n_nodes > 1
    recounted(model, receipts, set())
    gone = receipts[3 : n : n // 40]
    for receipt in gone:
        model.retract(receipt)
    recounted(model, receipts, {r.ordinal for r in gone})
    for receipt in gone[::2]:
        model.restore(receipt)
    recounted(model, receipts, {r.ordinal for r in gone[1::2]})
    receipts += feed(model, blobs(n // 3, [*SQUARE, [0, 0]], seed=1))
    model.end_round()
    recounted(model, receipts, {r.ordinal for r in gone[1::2]})


def test_a_retraction_moves_no_weight_and_cuts_no_leaf():
    model = model_of()
    receipts = feed(model, blobs(400, SQUARE))
    model.end_round()
    weights, nodes = model.weights.copy(), model.tree.n_nodes
    for receipt in receipts[::5]:
        model.retract(receipt)
    assert np.array_equal(model.weights, weights)
    assert model.tree.n_nodes == nodes


# the cap


def wandering(model: DensityModel, places: list, n: int) -> None:
    for k, place in enumerate(places):
        feed(model, blobs(n, [place], seed=k))


PLACES = [[0, 0], [4, 0], [0, 4], [4, 4], [-4, 0], [0, -4], [-4, -4], [4, -4]]


@pytest.mark.parametrize("mixture", ["tree", "soft_bayes", "eg"])
@pytest.mark.parametrize("split", ["evidence", "both"])
def test_a_full_tree_exchanges_pairs_and_adapts(mixture, split):
    """A tree that filled up in its first days never learned what came later."""
    limited, free = (model_of(max_nodes=n, mixture=mixture, split=split) for n in (9, 127))
    early, late = PLACES[:5], [[x + 12, y] for x, y in PLACES[:5]]
    feed(limited, blobs(500, early))
    planes = limited.tree.normal.copy()
    assert limited.tree.n_nodes == 9
    feed(limited, blobs(6000, late, seed=1))
    assert limited.tree.n_nodes == 9
    assert not np.array_equal(planes, limited.tree.normal)
    assert limited.weights.sum() == pytest.approx(1)
    feed(free, blobs(500, early))
    feed(free, blobs(6000, late, seed=1))
    new = blobs(500, late, seed=2)
    assert limited.log_density(new).mean() > free.log_density(new).mean() - 0.7


def test_at_the_cap_memory_is_flat():
    model = model_of(max_nodes=9)
    sizes = []
    for _ in range(4):
        wandering(model, PLACES, 400)
        sizes.append(sum(a.nbytes for name, a in model.state().items() if not name.startswith("pending")))
        assert model.tree.n_nodes <= 9
    share = max(LEAST, TOTAL // 5)
    assert len(model.growth.recent.ordinal) <= 5 * share
    assert max(sizes) - min(sizes) < 0.5 * max(sizes)
    limit = 5 * share * 8 * 8 + 9 * 2000
    assert max(sizes) < limit


def test_at_the_cap_candidates_hold_all_that_was_counted_since():
    """Else a label of hours later takes a sample out of a side that never counted it.

    They may hold more: what was counted before a collapse or a lift stays, and cannot be taken out any more.
    """
    model, receipts, rng = model_of(max_nodes=9), [], np.random.default_rng(0)
    for k in range(12):
        receipts += feed(model, blobs(400, [PLACES[i] for i in rng.permutation(8)[:5]], seed=k))
    model.end_round()
    growth, X = model.growth, np.array([r.x for r in receipts])
    ordinal = np.arange(1, len(X) + 1)
    held = model.tree.membership(X)
    for leaf in np.flatnonzero(model.tree.leaf).tolist():
        if growth.candidates.has[leaf]:
            there = held[:, leaf] & (ordinal >= growth.candidates.since[leaf])
            left = X @ growth.candidates.normal[leaf] >= growth.candidates.offset[leaf]
            sizes = growth.candidates.sizes(np.array([leaf]))[0]
            assert (sizes >= np.array([(there & left).sum(), (there & ~left).sum()]) - 1e-6).all()


# the reservoir


@given(st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=30)
def test_a_window_tells_from_where_on_a_leafs_rows_are_all_there(sizes, seed):
    rng, m = np.random.default_rng(seed), 1
    reservoir, leaves = Reservoir(m), 40
    reservoir.grow(leaves)
    everything, n = [], 0
    for size in sizes:
        ordinal = np.arange(n + 1, n + size + 1)
        leaf = rng.integers(0, 3, size)
        reservoir.add(ordinal[:, None].astype(float), np.zeros((size, m)), ordinal, ordinal.astype(float), leaf)
        reservoir.trim(leaves)
        everything += zip(ordinal.tolist(), leaf.tolist(), strict=True)
        n += size
    for leaf in range(3):
        rows = [o for o, at in everything if at == leaf]
        kept = reservoir.ordinal[reservoir.of(leaf)].tolist()
        assert kept == rows[-max(LEAST, LEAST_A_FEATURE * (m + 1), TOTAL // leaves) :]
        assert kept == [o for o in rows if o >= reservoir.window[leaf]]
        assert np.array_equal(reservoir.x[reservoir.of(leaf), 0], kept)


def test_a_row_goes_and_comes_back_in_its_place_unless_it_is_too_old():
    reservoir = Reservoir(1)
    ordinal = np.arange(1, 2001)
    reservoir.add(ordinal[:, None].astype(float), np.zeros((2000, 1)), ordinal, ordinal.astype(float), 0 * ordinal)
    reservoir.trim(1)
    before = reservoir.ordinal.copy()
    assert (before[0], reservoir.window[0]) == (2001 - TOTAL, 2001 - TOTAL)
    for ordinal, back in ((1500, True), (5, False)):
        reservoir.remove(ordinal)
        assert ordinal not in reservoir.ordinal
        reservoir.insert(np.array([float(ordinal)]), np.zeros(1), ordinal, float(ordinal), 0)
        assert (ordinal in reservoir.ordinal) == back
    assert np.array_equal(reservoir.ordinal, before)
    assert np.array_equal(reservoir.x[:, 0], before)


# worth


def test_worth_is_the_share_that_reaches_and_the_nats_that_children_save():
    tree = SubspaceTree(1)
    mixture, worth = MIXTURES["tree"](tree), Worth()
    pair = tree.split(0, np.ones(1), 0.0, 1)
    mixture.split(pair, 0.5, 0.3)
    worth.split(pair, 3, 0.3, 0.25)
    assert worth.used.tolist() == pytest.approx([1.0, 0.3, 0.7])
    assert worth.saved.tolist() == pytest.approx([0.25, 0.0, 0.0])
    log_density = np.tile([-3.0, -1.0, -9.0], (100, 1))
    below = np.log(np.exp([-1.0, -9.0]) @ mixture.weights[1:] / mixture.weights[1:].sum())
    for _ in range(100):
        worth.learn(mixture.shares(log_density), mixture, tree)
    assert worth.saved[0] == pytest.approx(below + 3.0, rel=1e-3)
    assert worth.saved[1:].tolist() == [0.0, 0.0]
    assert worth.used[0] == pytest.approx(1)
    assert worth.used[1] > 0.5 > worth.used[2]
