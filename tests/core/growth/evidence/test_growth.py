"""The growing tree: candidates, reservoirs and exact inheritance, and what happens at the cap."""

import numpy as np
import pytest

from core import Detector
from core.config import DetectorConfig
from core.density.model import DensityModel
from core.growth.evidence.reservoir import LEAST, TOTAL
from core.mixture.learned import LearnedSample
from core.trial import try_out

FAMILIES = pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])


def blobs(n: int, centers: list, seed: int = 0, spread: float = 0.3) -> np.ndarray:
    """Samples of these clusters, in turns at random."""
    rng = np.random.default_rng(seed)
    at = np.array(centers, float)
    return at[rng.integers(len(at), size=n)] + spread * rng.normal(size=(n, at.shape[1]))


def feed(model: DensityModel, X: np.ndarray) -> list[LearnedSample]:
    """Learn samples; how they were learned."""
    samples = []
    while len(X):
        rows = X[: model.room]
        batch = model.evaluate(rows, np.full(len(rows), np.nan))
        for i in range(len(rows)):
            ordinal = model.next_ordinal + i
            one = batch.learned[i], batch.spread[i], batch.left[i]
            samples.append(LearnedSample(ordinal, float(ordinal), *one))
        model.learn(batch)
        X = X[len(rows) :]
    return samples


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


def recounted(model: DensityModel, samples: list[LearnedSample], void: set[int]) -> None:
    """Each node, and each side of a candidate, holds just what it has counted since its ordinal."""
    tree, growth = model.tree, model.growth
    X = np.array([r.x for r in samples])
    ordinal = np.array([r.ordinal for r in samples])
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
    samples = feed(model, blobs(n, [*SQUARE, [0, 0]]))
    model.end_round()
    assert model.tree.n_nodes > 1
    recounted(model, samples, set())
    gone = samples[3 : n : n // 40]
    for sample in gone:
        model.retract(sample)
    recounted(model, samples, {r.ordinal for r in gone})
    for sample in gone[::2]:
        model.restore(sample)
    recounted(model, samples, {r.ordinal for r in gone[1::2]})
    samples += feed(model, blobs(n // 3, [*SQUARE, [0, 0]], seed=1))
    model.end_round()
    recounted(model, samples, {r.ordinal for r in gone[1::2]})


def test_a_retraction_moves_no_weight_and_cuts_no_leaf():
    model = model_of()
    samples = feed(model, blobs(400, SQUARE))
    model.end_round()
    weights, nodes = model.weights.copy(), model.tree.n_nodes
    for sample in samples[::5]:
        model.retract(sample)
    assert np.array_equal(model.weights, weights)
    assert model.tree.n_nodes == nodes


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
    model, samples, rng = model_of(max_nodes=9), [], np.random.default_rng(0)
    for k in range(12):
        samples += feed(model, blobs(400, [PLACES[i] for i in rng.permutation(8)[:5]], seed=k))
    model.end_round()
    growth, X = model.growth, np.array([r.x for r in samples])
    ordinal = np.arange(1, len(X) + 1)
    held = model.tree.membership(X)
    for leaf in np.flatnonzero(model.tree.leaf).tolist():
        if growth.candidates.has[leaf]:
            there = held[:, leaf] & (ordinal >= growth.candidates.since[leaf])
            left = X @ growth.candidates.normal[leaf] >= growth.candidates.offset[leaf]
            sizes = growth.candidates.sizes(np.array([leaf]))[0]
            assert (sizes >= np.array([(there & left).sum(), (there & ~left).sum()]) - 1e-6).all()


@pytest.mark.parametrize("split", ["evidence", "both", "scheduled"])
def test_nodes_that_labels_emptied_give_no_warning_without_a_gaussian_feature(split):
    rng = np.random.default_rng(0)
    high = rng.permutation(80) < 40
    X = rng.poisson(np.where(high, 300, 3))[:, None].astype(float)
    config = DetectorConfig.from_dict({"features": [{"name": "x", "kind": "poisson"}], "split": split})
    model = Detector(config)
    records = model.observe(X).records
    model.feedback(records[high], [True] * 40)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        model.observe(rng.poisson(3, (200, 1)).astype(float))
        try_out(model)
