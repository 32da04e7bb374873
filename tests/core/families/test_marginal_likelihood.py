"""Marginal likelihoods against the textbook's formula, and against the product of one-step predictions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln, multigammaln
from scipy.stats import multivariate_t

from core.families.marginal_likelihood import (
    MEAN_COUNT,
    OWN_COUNT,
    STRENGTHS,
    Expectation,
    choose_prior,
    log_evidence,
    log_share,
    quick_evidence,
)
from tests.effort import tries

SEEDS = st.integers(0, 2**32 - 1)
FLOOR = 1e-4
NO_CONTEXT = np.zeros(0, np.int64)


def samples(seed: int, n: int, m: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, m)) @ rng.normal(size=(m, m)) + rng.normal(size=m)


def scatter_of(X: np.ndarray, mean: np.ndarray, k0: float) -> np.ndarray:
    """About the prior mean, which counts as k0 samples."""
    n, off = len(X), X.mean(0) - mean
    return (X - X.mean(0)).T @ (X - X.mean(0)) + n * k0 / (n + k0) * np.outer(off, off)


def directly(n: float, S: np.ndarray, T: np.ndarray, a: float, k0: float) -> float:
    """Murphy 2007, eq. 266, with nu0 = a + m - 1 and Psi0 = a T."""
    m = len(S)
    nu = a + m - 1
    return (
        multigammaln((nu + n) / 2, m)
        - multigammaln(nu / 2, m)
        + nu / 2 * np.linalg.slogdet(a * T)[1]
        - (nu + n) / 2 * np.linalg.slogdet(a * T + S)[1]
        - n * m / 2 * np.log(np.pi)
        + m / 2 * np.log(k0 / (k0 + n))
    )


def scale_for(seed: int, m: int) -> np.ndarray:
    A = np.random.default_rng(seed + 1).normal(size=(m, m + 2))
    return A @ A.T


@settings(deadline=None, max_examples=tries(40))
@given(SEEDS, st.integers(1, 6), st.integers(1, 60), st.sampled_from([0.1, 1.0, 7.0]))
def test_log_evidence_is_the_textbooks(seed, m, n, k0):
    X, T = samples(seed, n, m), scale_for(seed, m)
    S = scatter_of(X, np.zeros(m), k0)
    shown = log_evidence(np.array([float(n)]), S[None], T[None], STRENGTHS, np.array([k0]))
    np.testing.assert_allclose(shown[0], [directly(n, S, T, a, k0) for a in STRENGTHS], rtol=1e-9, atol=1e-8)
    own = np.diag(T)
    shown = log_evidence(np.array([float(n)]), np.diag(S)[None], own[None], STRENGTHS, np.array([k0]))
    features = [slice(j, j + 1) for j in range(m)]
    one = [sum(directly(n, S[f, f], T[f, f], a, k0) for f in features) for a in STRENGTHS]
    np.testing.assert_allclose(shown[0], one, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("a", [1.0, 4.0, 32.0])
def test_the_evidence_is_the_product_of_what_was_predicted_one_by_one(m, a):
    """The chain rule: the Student t predictives that nodes score with, multiplied, are the marginal likelihood."""
    X, T, k0, nu0 = samples(3, 12, m), scale_for(3, m), 0.5, a + m - 1
    total = 0.0
    for n, x in enumerate(X):
        S = scatter_of(X[:n], np.zeros(m), k0) if n else np.zeros((m, m))
        mean = X[:n].sum(0) / (n + k0)
        scale = (a * T + S) / (nu0 + n - m + 1) * (n + k0 + 1) / (n + k0)
        total += multivariate_t(mean, scale, nu0 + n - m + 1).logpdf(x)
    assert total == pytest.approx(directly(12, scatter_of(X, np.zeros(m), k0), T, a, k0))


def test_a_fraction_of_a_sample_and_equal_samples_have_an_evidence():
    """Faded counts are no whole numbers, and the scatter of equal samples is zero."""
    count, scatter = np.array([0.25, 1e6, 3.0]), np.zeros((3, 2, 2))
    shown = log_evidence(count, scatter, np.tile(np.eye(2) * 1e-4, (3, 1, 1)), STRENGTHS, np.full(3, 0.1))
    assert np.isfinite(shown).all()
    assert shown[0, 2] == pytest.approx(directly(0.25, np.zeros((2, 2)), 1e-4 * np.eye(2), 4.0, 0.1))


@settings(deadline=None, max_examples=tries(20))
@given(SEEDS, st.integers(1, 4), st.integers(2, 40))
def test_the_chosen_prior_is_the_best_of_those_tried(seed, m, n):
    X = samples(seed, n, m)
    S, expected = scatter_of(X, X.mean(0), 0.1), np.full(m, 0.5)
    parent = scale_for(seed, m)
    d = np.sqrt(np.diag(parent))
    correlation, credit = parent / np.outer(d, d), 0.7
    choice = choose_prior(
        np.array([float(n)]),
        S[None],
        Expectation(expected[None], correlation[None], np.array([credit])),
        FLOOR,
        np.array([0.1]),
        NO_CONTEXT,
    )
    own = (OWN_COUNT * expected + np.diag(S)) / (OWN_COUNT + n) + FLOOR
    scales = [np.diag(own), (1 - credit) * np.diag(own) + credit * correlation * np.sqrt(np.outer(own, own))]
    tried = {(k, a): directly(n, S, scales[k], a, 0.1) for k in (0, 1) for a in STRENGTHS}
    k, a = max(tried, key=tried.__getitem__)
    assert choice.log_evidence[0] == pytest.approx(tried[k, a])
    assert choice.strength[0] == a
    assert np.allclose(choice.scale[0], scales[k])


def test_correlations_are_expected_where_the_samples_agree_with_them():
    """Shrinking correlations helps some streams and hurts where correlation is the signal: the evidence chooses."""
    rng = np.random.default_rng(0)
    correlation = np.array([[1.0, 0.95], [0.95, 1.0]])
    for covariance, correlated in ((correlation, True), (np.eye(2), False)):
        X = rng.multivariate_normal([0, 0], covariance, 12)
        S = scatter_of(X, X.mean(0), 0.1)[None]
        expected = Expectation(np.ones((1, 2)), correlation[None], np.array([0.9]))
        choice = choose_prior(np.array([12.0]), S, expected, FLOOR, np.array([0.1]), NO_CONTEXT)
        assert (abs(choice.scale[0, 0, 1]) > 0.1) == correlated


@settings(deadline=None, max_examples=tries(30))
@given(SEEDS, st.integers(1, 4), st.booleans())
def test_quick_evidence_ranks_as_the_full_one_of_its_strength(seed, m, diagonal):
    """Up to what depends on the number of samples alone, which all cuts of the same samples share."""
    X, expected, a = samples(seed, 40, m), np.full(m, 0.5), np.array([4.0])
    values, full = [], []
    for k in (8, 15, 20, 31):
        both = [0.0, 0.0]
        for side in (X[:k], X[k:]):
            n, S = np.array([float(len(side))]), scatter_of(side, side.mean(0), 0.1)
            S = np.diag(S) if diagonal else S
            own = (OWN_COUNT * expected + (S if diagonal else np.diag(S))) / (OWN_COUNT + n[0]) + FLOOR
            T = own if diagonal else np.diag(own)
            quick = quick_evidence(n, S[None], expected, a, FLOOR)
            both[0] += float(np.asarray(quick).ravel()[0])
            both[1] += float(log_evidence(n, S[None], T[None], a, np.full(1, MEAN_COUNT))[0, 0])
        values.append(both[0])
        full.append(both[1])
    difference = np.array(values) - np.array(full)
    assert np.ptp(difference) < 1e-8 * max(1.0, np.abs(full).max())


@given(st.floats(0.01, 1e4), st.floats(0.01, 1e4))
def test_the_evidence_of_the_sides_shares_is_a_beta_function(left, right):
    shown = log_share(np.array([left]), np.array([right]))[0]
    assert shown == pytest.approx(betaln(left + 0.5, right + 0.5) - betaln(0.5, 0.5), rel=1e-9, abs=1e-9)
