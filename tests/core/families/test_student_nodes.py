"""The posterior predictive: Student t by scipy, and what is expected of features that are not known."""

import numpy as np
import pytest
from scipy.stats import multivariate_t, t

from core.families import DiagonalGaussian, Gaussian
from core.families.base import Prior
from core.families.statistics import Statistics
from core.families.student_nodes import most_freedom, stretch

M, COUNT = 3, 1.5
FAMILIES = [Gaussian, DiagonalGaussian]


def nodes_of(family, n):
    """One node that has counted n samples, with its location, scale matrix and degrees of freedom by the textbook."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, M)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 0.4]]) + 2
    statistics = Statistics(1, M, diagonal=family.diagonal)
    for x in X:
        statistics.insert(np.array([0]), x, np.zeros(M))
    unit = np.ones((1, M)) if family.diagonal else np.eye(M)[None]
    count = np.array([COUNT])
    nodes = family(M).nodes(predictive=True)
    nodes.update(statistics, Prior(count, np.zeros((1, M)), count, unit, floor=0.01), np.array([0]))
    total = n + COUNT
    mean = X.sum(0) / total
    covariance = ((X - mean).T @ (X - mean) + COUNT * (np.eye(M) + np.outer(mean, mean))) / total + 0.01 * np.eye(M)
    if family.diagonal:
        covariance = np.diag(np.diag(covariance))
    return nodes, mean, covariance * (total + 1) / total, min(total, most_freedom(M))


def log_density(family, X, mean, scale, freedom):
    if family.diagonal:
        return t.logpdf(X, freedom, mean, np.sqrt(np.diag(scale))).sum(-1)
    return multivariate_t(mean, scale, freedom).logpdf(X)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [1, 4, 60])
def test_the_predictive_is_a_student_t(family, n):
    nodes, mean, scale, freedom = nodes_of(family, n)
    X = np.random.default_rng(0).normal(size=(40, M)) * 5
    expected = log_density(family, X, mean, scale, freedom)
    np.testing.assert_allclose(nodes.log_density(X)[:, 0], expected, rtol=1e-9)
    assert not np.allclose(expected, log_density(family, X, mean, scale, freedom + 1), rtol=1e-3)
    pair = [0, 2]
    marginal = log_density(family, X[:, pair], mean[pair], scale[np.ix_(pair, pair)], freedom)
    np.testing.assert_allclose(nodes.marginal(pair).log_density(X[:, pair])[:, 0], marginal, rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [4, 60])
def test_the_expected_log_density_is_that_of_drawn_features(family, n):
    nodes, mean, scale, freedom = nodes_of(family, n)
    missing = np.array([False, True, True])
    x = np.array([[3.0, np.nan, np.nan]])
    given = nodes.conditional(x, missing)
    draws = conditional_draws(family, x[0, 0], mean, scale, freedom)
    by_drawing = log_density(family, draws, mean, scale, freedom)
    assert given.log_density[0, 0] == pytest.approx(by_drawing.mean(), abs=5 * by_drawing.std() / np.sqrt(len(draws)))
    assert given.known[0, 0] == pytest.approx(t.logpdf(3.0, freedom, mean[0], np.sqrt(scale[0, 0])), rel=1e-9)
    np.testing.assert_allclose(given.mean[0, 0], np.median(draws[:, 1:], axis=0), atol=0.05)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [8, 60])
@pytest.mark.parametrize("first", [0.0, 3.0, 30.0])
def test_the_variance_of_features_given_others_is_that_of_drawn_ones(family, n, first):
    """With correlations it grows with how odd the known ones are; products of features know nothing of each other."""
    nodes, mean, scale, freedom = nodes_of(family, n)
    given = nodes.conditional(np.array([[first, np.nan, np.nan]]), np.array([False, True, True]))
    draws = conditional_draws(family, first, mean, scale, freedom)[:, 1:]
    np.testing.assert_allclose(given.variance[0, 0], draws.var(0), rtol=0.06)
    if family.diagonal:
        exact = np.diag(scale)[1:] * freedom / (freedom - 2)
    else:
        rest = np.diag(scale)[1:] - scale[1:, 0] ** 2 / scale[0, 0]
        exact = rest * (freedom + (first - mean[0]) ** 2 / scale[0, 0]) / (freedom + 1 - 2)
    np.testing.assert_allclose(given.variance[0, 0], exact, rtol=1e-9)


def test_where_there_is_no_variance_one_is_made_up():
    freedom = np.array([0.5, 1.0, 2.0, 3.0, 1e6])
    np.testing.assert_allclose(stretch(freedom, np.ones((1, 5)), 1)[0], [1.5, 2.0, 3.0, 2.0, 1.0], rtol=1e-5)


def test_the_variance_given_far_values_stays_finite():
    wide = Statistics(1, 2, diagonal=False)
    for x in ([1e100, 0.0], [-1e100, 0.1], [0.0, 0.2]):
        wide.insert(np.array([0]), np.array(x), np.zeros(2))
    nodes = Gaussian(2).nodes(predictive=True)
    unit = np.eye(2)[None]
    nodes.update(wide, Prior(np.array([COUNT]), np.zeros((1, 2)), np.array([COUNT]), unit, floor=0.01), np.array([0]))
    given = nodes.conditional(np.array([[np.nan, 1e100]]), np.array([True, False]))
    assert 0 < given.variance.max() < np.inf


def conditional_draws(family, first, mean, scale, freedom, n=40_000):
    """Samples with the first feature as given: scipy draws the others from the conditional Student t."""
    rng = np.random.default_rng(1)
    if family.diagonal:
        rest = t.rvs(freedom, mean[1:], np.sqrt(np.diag(scale)[1:]), size=(n, M - 1), random_state=rng)
    else:
        gain = scale[1:, 0] / scale[0, 0]
        stretch = (freedom + (first - mean[0]) ** 2 / scale[0, 0]) / (freedom + 1)
        shape = stretch * (scale[1:, 1:] - np.outer(gain, scale[0, 1:]))
        rest = multivariate_t(mean[1:] + gain * (first - mean[0]), shape, freedom + 1).rvs(n, random_state=rng)
    return np.column_stack([np.full(n, first), rest])


def test_features_are_left_out_of_samples_far_from_narrow_nodes():
    narrow = Statistics(1, 2, diagonal=False)
    for x in ([0.0, 0.0], [0.0, 1.0], [0.0, 2.0]):
        narrow.insert(np.array([0]), np.array(x), np.zeros(2))
    nodes = Gaussian(2).nodes(predictive=True)
    scale = np.array([[[1e-80, 0.0], [0.0, 1.0]]])
    nodes.update(
        narrow, Prior(np.array([COUNT]), np.zeros((1, 2)), np.array([COUNT]), scale, floor=1e-80), np.array([0])
    )
    left = nodes.left_out(np.array([[1e100, 0.0]]))
    assert np.isfinite(left.log_density).all()
    assert np.isfinite(left.mean).all()
