"""The model on its own: rounds, missing values, drawing in."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from core.config import DetectorConfig
from core.density.model import REACH, DensityModel
from tests.core.samples import clusters


def model_of(X: np.ndarray, **fields) -> DensityModel:
    model = DensityModel(DetectorConfig(n_features=X.shape[1], scaling="none", **fields))
    while len(X):
        size = model.room
        model.learn(model.evaluate(X[:size], np.full(len(X[:size]), np.nan)))
        X = X[size:]
    return model


def test_rounds_grow_with_what_was_learned():
    model = model_of(clusters(1000), round_growth=0.1, max_round=64)
    assert model.n_learned + len(model.state()["pending"]) == 1000
    assert model.next_ordinal == 1001
    assert 1 <= model.room <= 64
    assert model.n_learned > 1000 - 64
    paper = model_of(clusters(100), profile="paper")
    assert (paper.n_learned, paper.room) == (100, 1)


def test_a_round_is_scored_by_the_model_before_it():
    X = clusters(400)
    model = model_of(X[:300], round_growth=1.0, max_round=50)
    model.end_round()
    before, room = model.log_density(X), model.room
    assert room == 50
    for x in X[300 : 300 + room - 1]:
        model.learn(model.evaluate(x[None], np.array([np.nan])))
        assert np.array_equal(model.log_density(X), before)
    model.learn(model.evaluate(X[-1:], np.array([np.nan])))
    assert not np.array_equal(model.log_density(X), before)
    assert model.n_learned == 300 + room


def test_the_root_is_the_map_gaussian():
    X = clusters(200)
    model = model_of(X, max_nodes=1, round_growth=0.0, profile="paper", prior_count=2.0)
    mean = X.sum(0) / 202
    covariance = (X.T @ X + 2 * np.eye(3)) / 202 - np.outer(mean, mean)
    expected = multivariate_normal.logpdf(X, mean, covariance)
    assert np.allclose(model.log_density(X), expected)


@pytest.mark.parametrize("profile", ["default", "paper"])
@pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])
def test_a_missing_feature_is_scored_by_its_expectation(family, profile):
    """One node: the mean, over the missing feature given the rest, of the full log density."""
    X = np.random.default_rng(0).multivariate_normal([1, -1], [[1, 0.8], [0.8, 1]], 500)
    model = model_of(X, max_nodes=1, family=family, profile=profile)
    (mean, scale) = (a[0] for a in model.densities.moments())
    given = 2.0
    gain = scale[0, 1] / scale[1, 1]
    center = mean[0] + gain * (given - mean[1])
    deviation = np.sqrt(scale[0, 0] - gain * scale[0, 1])
    points = np.stack(
        [np.linspace(center - 60 * deviation, center + 60 * deviation, 60_001), np.full(60_001, given)], 1
    )
    log_density = model.log_density(points)
    weights = np.exp(log_density - log_density.max())
    expected = weights @ log_density / weights.sum()
    assert model.log_density(np.array([[np.nan, given]]))[0] == pytest.approx(expected, rel=1e-6)
    batch = model.evaluate(np.array([[np.nan, given]]), np.array([np.nan]))
    assert batch.learned[0] == pytest.approx([center, given])
    assert batch.spread[0, 1] == 0
    mean_square = weights @ (points[:, 0] - center) ** 2 / weights.sum()
    assert batch.spread[0, 0] == pytest.approx(mean_square, rel=0.01)


@pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])
def test_a_sample_is_learned_no_farther_than_the_reach(family):
    """Along the line to the root's mean, to so many of its deviations; what is nearer is learned as it is."""
    X = np.random.default_rng(0).multivariate_normal([1, -1], [[1, 0.8], [0.8, 1]], 300)
    model = model_of(X, family=family, max_nodes=1)
    mean, covariance = (a[0] for a in model.densities.moments())
    far = np.array([[1e100, -1e100], [20.0, 20.0], [2.0, 2.0], [1.0, -1e15]])
    batch = model.evaluate(far, np.full(4, np.nan))
    off = batch.learned - mean
    distance = np.sqrt(np.einsum("ni,ij,nj->n", off, np.linalg.inv(covariance), off))
    reach = np.sqrt(2) + REACH
    assert distance[[0, 1, 3]] == pytest.approx([reach] * 3)
    assert np.array_equal(batch.learned[2], far[2])
    assert batch.altered.tolist() == [True, True, False, True]
    cosine = ((far - mean) * off).sum(1) / np.linalg.norm(far - mean, axis=1) / np.linalg.norm(off, axis=1)
    assert cosine == pytest.approx(1.0)


def test_the_papers_samples_are_learned_as_they_are():
    paper = model_of(np.zeros((3, 2)), profile="paper")
    assert paper.evaluate(np.array([[1e15, 0.0]]), np.array([np.nan])).learned.tolist() == [[1e15, 0.0]]


def test_max_nodes_is_kept():
    for limit in (1, 2, 3, 8):
        model = model_of(clusters(600), max_nodes=limit)
        assert model.tree.n_nodes <= limit
    assert model_of(clusters(600)).tree.n_nodes > 3
