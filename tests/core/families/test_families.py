"""The identities that make a family what it is (efax's tests are the example): T, A, h, the moment map, the nodes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import dblquad, quad
from scipy.stats import multivariate_normal

from core.families import DiagonalGaussian, Family, Gaussian
from core.families.base import NodeDensities, Prior
from core.families.statistics import Statistics

FAMILIES = [Gaussian, DiagonalGaussian]
SEEDS = st.integers(0, 2**32 - 1)
FEATURES = st.integers(1, 4)


def random_moments(family: type[Family], m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A mean, and a covariance that the family can have."""
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(m, m))
    covariance = mixing @ mixing.T + 0.3 * np.eye(m)
    return rng.normal(size=m), np.diag(np.diag(covariance)) if family.diagonal else covariance


def mean_statistic_of(family: type[Family], mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """E T(x), by hand."""
    square = covariance + np.outer(mean, mean)
    return np.concatenate([mean, np.diag(square) if family.diagonal else square.ravel()])


@pytest.mark.parametrize("family", FAMILIES)
@given(m=FEATURES, seed=SEEDS)
@settings(max_examples=12, deadline=None)
def test_gradient_of_log_partition_is_the_mean_of_t(family, m, seed):
    expected = mean_statistic_of(family, *random_moments(family, m, seed))
    model = family(m)
    eta = model.natural(expected)
    gradient = np.empty_like(eta)
    for i in range(len(eta)):
        step = np.zeros_like(eta)
        step[i] = 1e-6 * max(1.0, abs(eta[i]))
        rise = model.log_partition(eta + step) - model.log_partition(eta - step)
        gradient[i] = rise / (2 * step[i])
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.mean_statistic(eta), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
@given(m=FEATURES, seed=SEEDS)
@settings(max_examples=12, deadline=None)
def test_natural_to_mean_to_natural(family, m, seed):
    model = family(m)
    eta = model.natural(mean_statistic_of(family, *random_moments(family, m, seed)))
    np.testing.assert_allclose(model.natural(model.mean_statistic(eta)), eta, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("family", FAMILIES)
@given(m=FEATURES, seed=SEEDS)
@settings(max_examples=12, deadline=None)
def test_density_matches_scipy(family, m, seed):
    mean, covariance = random_moments(family, m, seed)
    X = np.random.default_rng(seed).normal(scale=3.0, size=(5, m))
    model = family(m)
    expected = multivariate_normal(mean, covariance).logpdf(X)
    shown = model.log_density(model.natural(mean_statistic_of(family, mean, covariance)), X)
    np.testing.assert_allclose(shown, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_density_integrates_to_one_in_1_and_2_dimensions(family):
    for m in (1, 2):
        model = family(m)
        eta = model.natural(mean_statistic_of(family, *random_moments(family, m, 3)))

        def density(*x, model=model, eta=eta):
            return float(np.exp(model.log_density(eta, np.array([x]))[0]))

        box = [-14.0, 14.0]
        total = quad(density, *box)[0] if m == 1 else dblquad(density, *box, *box, epsabs=1e-4)[0]
        assert total == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
@given(m=FEATURES, n=st.integers(10, 40), seed=SEEDS)
@settings(max_examples=12, deadline=None)
def test_moment_map_of_the_running_mean_is_the_maximum_of_the_likelihood(family, m, n, seed):
    """By eq. (4): follow the leader on log-loss."""
    X = np.random.default_rng(seed).normal(size=(n, m))
    model = family(m)
    running = np.zeros_like(model.sufficient(X[:1])[0])
    for t, x in enumerate(X, 1):
        running += (model.sufficient(x[None])[0] - running) / t
    eta = model.natural(running)
    best = model.log_density(eta, X).sum()
    covariance = np.cov(X.T, bias=True).reshape(m, m)
    covariance = np.diag(np.diag(covariance)) if family.diagonal else covariance
    assert best == pytest.approx(multivariate_normal(X.mean(0), covariance).logpdf(X).sum(), rel=1e-7)
    for other in (0.9, 1.1):
        nearby = model.natural(mean_statistic_of(family, X.mean(0), other * covariance))
        assert model.log_density(nearby, X).sum() < best


def nodes_of(
    family: type[Family], m: int, seed: int, count: float = 0.7, *, predictive: bool = False
) -> tuple[NodeDensities, list]:
    """Two nodes that have counted some samples, and their moments by the formula of pseudo-samples."""
    rng = np.random.default_rng(seed)
    statistics, model = Statistics(2, m, diagonal=family.diagonal), family(m)
    X, weights = rng.normal(size=(12, m)) * 2 + 1, (rng.random((12, 2)) < 0.6).astype(float)
    for x, taken in zip(X, weights > 0, strict=True):
        statistics.insert(np.flatnonzero(taken), x, np.zeros(m))
    unit = np.ones((2, m)) if family.diagonal else np.tile(np.eye(m), (2, 1, 1))
    prior = Prior(np.full(2, count), rng.normal(size=(2, m)), np.full(2, count), unit, floor=0.01)
    nodes = model.nodes(predictive=predictive)
    nodes.update(statistics, prior, np.arange(2))
    expected = []
    for node in range(2):
        counted = model.sufficient(X[weights[:, node] > 0]).sum(0)
        pseudo = count * mean_statistic_of(family, prior.mean[node], np.eye(m))
        average = (counted + pseudo) / (weights[:, node].sum() + count)
        mean, square = average[:m], average[m:]
        covariance = np.diag(square - mean**2) if family.diagonal else square.reshape(m, m) - np.outer(mean, mean)
        expected.append((mean, covariance + 0.01 * np.eye(m)))
    return nodes, expected


@pytest.mark.parametrize("family", FAMILIES)
@given(m=FEATURES, seed=SEEDS)
@settings(max_examples=12, deadline=None)
def test_nodes_have_the_mean_of_t_of_samples_and_pseudo_samples(family, m, seed):
    nodes, expected = nodes_of(family, m, seed)
    X = np.random.default_rng(seed).normal(scale=3.0, size=(70, m))
    means, covariances = nodes.moments()
    shown = nodes.log_density(X)
    for node, (mean, covariance) in enumerate(expected):
        np.testing.assert_allclose(means[node], mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(covariances[node], covariance, rtol=1e-9, atol=1e-9)
        log_density = multivariate_normal(mean, covariance).logpdf(X)
        np.testing.assert_allclose(shown[:, node], log_density, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
@given(m=st.integers(2, 4), seed=SEEDS)
@settings(max_examples=10, deadline=None)
def test_conditional_is_marginal_and_expected_rest(family, m, seed):
    """log f(known) - entropy of the missing features given the known ones; and marginal gives the same log f."""
    nodes, expected = nodes_of(family, m, seed)
    rng = np.random.default_rng(seed)
    missing = np.zeros(m, bool)
    missing[rng.permutation(m)[: rng.integers(1, m)]] = True
    x = rng.normal(scale=2.0, size=m)
    given_rest = nodes.conditional(np.where(missing, np.nan, x)[None], missing)
    marginal = nodes.marginal(np.flatnonzero(~missing).tolist()).log_density(x[None, ~missing])
    for node, (mean, covariance) in enumerate(expected):
        known = multivariate_normal(mean[~missing], covariance[np.ix_(~missing, ~missing)])
        gain = covariance[np.ix_(missing, ~missing)] @ np.linalg.inv(covariance[np.ix_(~missing, ~missing)])
        rest_mean = mean[missing] + gain @ (x - mean)[~missing]
        rest = covariance[np.ix_(missing, missing)] - gain @ covariance[np.ix_(~missing, missing)]
        log_known = float(known.logpdf(x[~missing]))
        log_expected = log_known - float(multivariate_normal(rest_mean, rest).entropy())
        assert marginal[0, node] == pytest.approx(log_known, rel=1e-8, abs=1e-8)
        assert given_rest.log_density[0, node] == pytest.approx(log_expected, rel=1e-8, abs=1e-8)
        np.testing.assert_allclose(given_rest.mean[0, node], rest_mean, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(given_rest.variance[0, node], np.diag(rest), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_identities_can_fail(family):
    """Negative control: at another eta neither the mean of T nor the density fits."""
    mean, covariance = random_moments(family, 2, 1)
    model = family(2)
    eta = model.natural(mean_statistic_of(family, mean, covariance)) * 1.01
    assert not np.allclose(model.mean_statistic(eta), mean_statistic_of(family, mean, covariance), rtol=1e-4)
    X = np.ones((1, 2))
    assert not np.allclose(model.log_density(eta, X), multivariate_normal(mean, covariance).logpdf(X), rtol=1e-4)
