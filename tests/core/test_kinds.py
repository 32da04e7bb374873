"""The battery of every factor: T, A, h and the moment map; prior, evidence and predictive; limits and codes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import bernoulli, betaprime, expon, gamma, lomax, nbinom, poisson

from core.families import Product
from core.families.bernoulli import Bernoulli
from core.families.categorical import Categorical
from core.families.exponential import Exponential
from core.families.factor import MOST_COUNT, Factor
from core.families.gamma import Gamma, shape_of
from core.families.gaussian import DiagonalGaussian, Gaussian
from core.families.layout import FACTORS, Layout
from core.families.poisson import Poisson
from core.kinds import KINDS, LEVELS

FACTOR_TYPES = list(FACTORS.values())
CLOSED = [Bernoulli, Categorical, Exponential, Poisson]
SEEDS = st.integers(0, 2**32 - 1)
EXAMPLES = settings(max_examples=15, deadline=None)


def drawn(factor: Factor, n: int, seed: int) -> np.ndarray:
    """Values (n,) of a member of the family drawn itself."""
    rng = np.random.default_rng(seed)
    match factor.kind:
        case "bernoulli":
            return (rng.random(n) < rng.uniform(0.05, 0.95)).astype(float)
        case "categorical":
            return rng.choice(5, n, p=rng.dirichlet(np.ones(5))).astype(float)
        case "poisson":
            return rng.poisson(10 ** rng.uniform(-1, 3), n).astype(float)
        case "exponential":
            return rng.exponential(10 ** rng.uniform(-2, 2), n)
        case _:
            return rng.gamma(10 ** rng.uniform(-0.5, 1.5), 10 ** rng.uniform(-2, 2), n)


def mean_statistic(factor: Factor, seed: int) -> np.ndarray:
    """The mean of T over samples, inside of the space that means can be in."""
    some = drawn(factor, 30, seed)
    if factor.kind == "categorical":
        some = np.concatenate([some, np.arange(LEVELS)])
    elif factor.kind in ("bernoulli", "poisson"):
        some = np.concatenate([some, [0.0, 1.0]])
    return factor.sufficient(some[:, None]).mean(0)


def z_of(factor: Factor, x: np.ndarray) -> np.ndarray:
    return KINDS[factor.kind].coordinate(x)


def counted(factor: Factor, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count (1,) and mean columns (1, width) of values."""
    return np.array([float(len(x))]), factor.columns(z_of(factor, x)).mean(0)[None]


@pytest.mark.parametrize("family", FACTOR_TYPES)
@given(seed=SEEDS)
@EXAMPLES
def test_gradient_of_log_partition_is_the_mean_of_t(family, seed):
    factor = family()
    expected = mean_statistic(factor, seed)
    eta = factor.natural(expected)
    for i in range(len(eta)):
        step = np.zeros_like(eta)
        step[i] = 1e-6 * max(1e-3, abs(eta[i]))
        rise = factor.log_partition(eta + step) - factor.log_partition(eta - step)
        assert rise / (2 * step[i]) == pytest.approx(expected[i], rel=1e-4, abs=1e-5)
    np.testing.assert_allclose(factor.mean_statistic(eta), expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(factor.natural(factor.mean_statistic(eta)), eta, rtol=1e-7)
    assert not np.allclose(factor.mean_statistic(eta - 0.01 * np.eye(len(eta))[0]), expected, rtol=1e-6)


@given(seed=SEEDS)
@EXAMPLES
def test_densities_match_scipy(seed):
    rng = np.random.default_rng(seed)
    p, rate, shape = rng.uniform(0.1, 0.9), rng.uniform(0.1, 50), rng.uniform(0.3, 30)
    for family, eta, law in (
        (Bernoulli, [np.log(p / (1 - p))], bernoulli(p)),
        (Poisson, [np.log(rate)], poisson(rate)),
        (Exponential, [-rate], expon(scale=1 / rate)),
        (Gamma, [shape, -rate], gamma(shape, scale=1 / rate)),
    ):
        x = law.rvs(7, random_state=rng).astype(float)
        shown = family().log_density(np.array(eta), x[:, None])
        whole = family in (Bernoulli, Poisson)
        np.testing.assert_allclose(shown, law.logpmf(x) if whole else law.logpdf(x), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("family", FACTOR_TYPES)
@pytest.mark.parametrize("n", [0, 1, 7, 400])
def test_predictives_sum_or_integrate_to_one(family, n):
    factor = family()
    x = drawn(factor, max(n, 1), n + 1)
    count, mean = counted(factor, x)
    one = factor.predictive(*factor.posterior(count * (n > 0), mean, factor.start()[None]))
    if factor.kind in ("gamma", "exponential"):

        def density(log_x: float) -> float:
            z = z_of(factor, np.exp(np.array([log_x])))
            return float(np.exp(one.log_density(z)[0, 0] + log_x))

        edges = [-700, -100, -20, *range(-10, 15), 30, 100, 229]  # times are told apart up to 1e100 units
        total = sum(quad(density, *pair, limit=200)[0] for pair in pairwise(edges))
    else:
        most = {"bernoulli": 2, "categorical": LEVELS, "poisson": 200_000}[factor.kind]
        total = np.exp(one.log_density(z_of(factor, np.arange(float(most))))).sum()
    assert total == pytest.approx(1.0, abs=2e-3 if n < 2 else 1e-6)


@given(seed=SEEDS, n=st.integers(1, 60))
@EXAMPLES
def test_predictives_match_scipy(seed, n):
    for family in (Bernoulli, Poisson, Exponential, Gamma):
        factor = family()
        x = drawn(factor, n, seed)
        c, t = factor.posterior(*counted(factor, x), factor.start()[None])
        capped, mean = min(c[0], MOST_COUNT), t[0, -1 if family is Gamma else 1]
        shown = factor.predictive(c, t).log_density(z_of(factor, x))[:, 0]
        match factor.kind:
            case "bernoulli":
                expected = bernoulli(mean).logpmf(x)
            case "poisson":
                expected = nbinom(capped * mean, capped / (capped + 1)).logpmf(x)
            case "exponential":
                expected = lomax(capped + 1, scale=capped * mean).logpdf(x)
            case _:
                k = shape_of(np.array([np.log(mean) - t[0, 1]]))[0]
                expected = betaprime(k, capped * k + 1, scale=capped * mean).logpdf(x)
        np.testing.assert_allclose(shown, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("family", CLOSED)
@given(seed=SEEDS, n=st.integers(1, 25))
@EXAMPLES
def test_evidence_is_the_chain_of_predictives(family, seed, n):
    """While no cap on what a predictive may count is reached."""
    factor = family()
    x = drawn(factor, n, seed)
    expected, chain = factor.start()[None], 0.0
    for i in range(n):
        count, mean = counted(factor, x[:i]) if i else (np.zeros(1), np.zeros((1, factor.width)))
        one = factor.predictive(*factor.posterior(count, mean, expected))
        chain += one.log_density(z_of(factor, x[i : i + 1]))[0, 0]
    evidence = factor.log_evidence(*counted(factor, x), expected)[0] + factor.log_base(x[:, None]).sum()
    assert chain == pytest.approx(evidence, rel=1e-8, abs=1e-8)


@given(seed=SEEDS, n=st.integers(1, 25))
@EXAMPLES
def test_a_gamma_s_evidence_is_the_integral_over_rate_and_shape(seed, n):
    """By brute force over the shape; the rate's integral is a Gamma's."""
    factor = Gamma()
    x = drawn(factor, n, seed)
    c, t = factor.posterior(*counted(factor, x), factor.start()[None])
    k = np.exp(np.linspace(-25, 25, 40_001))
    terms = c * (k * t[0, 1] - gammaln(k)) + gammaln(c * k + 1) - (c * k + 1) * np.log(c * t[0, 2]) + np.log(k)
    brute = terms.max() + np.log(np.exp(terms - terms.max()).sum() * 50 / 40_000)
    assert factor.log_normalizer(c, t)[0] == pytest.approx(brute, rel=1e-6, abs=2e-3)


@pytest.mark.parametrize("family", FACTOR_TYPES)
@given(seed=SEEDS, n=st.integers(1, 200))
@EXAMPLES
def test_expected_log_density_is_the_mean_over_drawn_values(family, seed, n):
    factor = family()
    x = drawn(factor, n, seed)
    c, t = factor.posterior(*counted(factor, x), factor.start()[None])
    one, rng = factor.predictive(c, t), np.random.default_rng(seed)
    values = predictive_draws(factor, c[0], t[0], rng, 20_000)
    log_density = one.log_density(z_of(factor, values))[:, 0]
    error = 6 * log_density.std() / np.sqrt(len(values)) + 1e-3
    assert one.expected()[0] == pytest.approx(log_density.mean(), abs=error)


def predictive_draws(factor: Factor, c: float, t: np.ndarray, rng: np.random.Generator, n: int) -> np.ndarray:
    capped = min(c, MOST_COUNT)
    match factor.kind:
        case "bernoulli":
            return (rng.random(n) < t[1]).astype(float)
        case "categorical":
            return rng.choice(LEVELS, n, p=t / t.sum()).astype(float)
        case "poisson":
            return nbinom(capped * t[1], capped / (capped + 1)).rvs(n, random_state=rng).astype(float)
        case "exponential":
            return lomax(capped + 1, scale=capped * t[1]).rvs(n, random_state=rng)
        case _:
            k = shape_of(np.array([np.log(t[2]) - t[1]]))[0]
            return betaprime(k, capped * k + 1, scale=capped * t[2]).rvs(n, random_state=rng)


@pytest.mark.parametrize("family", FACTOR_TYPES)
def test_a_missing_value_is_not_counted(family):
    factor = family()
    x = drawn(factor, 20, 3)
    full = factor.posterior(*counted(factor, x), factor.start()[None])
    rows = np.concatenate([factor.columns(z_of(factor, x)), np.zeros((15, factor.width))])
    some = factor.posterior(np.array([35.0]), rows.mean(0)[None], factor.start()[None])
    for one, other in zip(full, some, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


EXTREMES = {
    "bernoulli": [0, 1],
    "categorical": [0, 1, 2, 3, 4, 62, 63],
    "poisson": [0, 1, 2, 12345, 2**53 // 16, 10**12 + 1, 10**15 - 1, 10**15],
    "exponential": [0, 5e-324, 1e-300, 1.0, 1e15, 1e300, 1.7e308],
    "gamma": [5e-324, 1e-300, 1.0, 1e15, 1e300, 1.7e308],
}


@pytest.mark.parametrize("family", FACTOR_TYPES)
@pytest.mark.parametrize("n", [0, 3, 10**6])
def test_every_value_of_the_support_has_a_finite_density(family, n):
    """Also for nodes that have seen nothing, or one and the same value a million times."""
    factor = family()
    x = np.array(EXTREMES[factor.kind], float)
    for same in x[np.isfinite(z_of(factor, x))]:
        columns = factor.columns(np.array([same if factor.kind != "categorical" else 0.0]))
        low, high = factor.limits(float(n), factor.start(), factor.start(), 5.0)
        columns = factor.columns(np.clip(z_of(factor, np.array([same])), low, high))
        c, t = factor.posterior(np.array([float(n)]), columns, factor.start()[None])
        one = factor.predictive(c, t)
        parts = one.log_density(z_of(factor, x)), one.expected(), one.center(), one.spread()
        assert all(np.isfinite(part).all() for part in parts)
        assert np.isfinite(factor.log_evidence(np.array([float(n)]), columns, factor.start()[None])).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_coordinate_tells_the_value(kind):
    x = np.array(EXTREMES.get(kind, EXTREMES["gamma"]), float)
    inverse = KINDS[kind].value(KINDS[kind].coordinate(x))
    expected = np.clip(x, 1e-300, 1e300) if kind in ("gamma", "lognormal") else np.minimum(x, 1e300)
    if kind == "gaussian":
        expected = x
    if KINDS[kind].whole:
        assert np.array_equal(np.rint(inverse), expected)
    else:
        np.testing.assert_allclose(inverse, expected, rtol=1e-12)
    assert KINDS[kind].inside(x).all()
    assert (np.diff(KINDS[kind].coordinate(np.sort(x))) >= 0).all()


@pytest.mark.parametrize("c", [1.0, 30.0])
@pytest.mark.parametrize("rate", [1e-3, 3.0, 1e6, 1e12])
def test_the_negative_binomial_keeps_its_digits(c, rate):
    """Differences of log-gamma at counts of 1e15 are off by tens of nats; here the density falls evenly, as it must."""
    one = Poisson().predictive(np.array([c]), np.array([[1.0, rate, 0.0]]))
    x = np.rint(rate * np.array([1.0, 1.5, 2.0, 10.0, 100.0])) + np.arange(5)
    log_density = one.log_density(2 * np.sqrt(x))[:, 0]
    assert (np.diff(log_density) < 0).all()
    if rate <= 1e6:
        np.testing.assert_allclose(log_density, nbinom(c * rate, c / (c + 1)).logpmf(x), rtol=1e-6)


def test_no_code_lies_on_both_sides_of_its_neighbours():
    z = KINDS["categorical"].coordinate(np.arange(float(LEVELS)))
    assert (np.diff(z) > 0).all()
    assert z[-1] < 4


KINDS_OF_A_PRODUCT = ("poisson", "gaussian", "gamma", "lognormal", "bernoulli", "exponential", "gaussian")


@pytest.mark.parametrize("block", [Gaussian, DiagonalGaussian])
@given(seed=SEEDS)
@EXAMPLES
def test_a_product_is_an_exponential_family_too(block, seed):
    family, rng = Product(block, KINDS_OF_A_PRODUCT), np.random.default_rng(seed)
    X = np.abs(rng.normal(size=(60, 7))) + 0.1
    X[:, [0, 4]] = np.stack([rng.poisson(4, 60), rng.random(60) < 0.5], 1)
    X[:2, 4] = 0, 1
    expected = family.sufficient(X).mean(0)
    eta = family.natural(expected)
    np.testing.assert_allclose(family.mean_statistic(eta), expected, rtol=1e-6, atol=1e-8)
    for i in range(len(eta)):
        step = np.zeros_like(eta)
        step[i] = 1e-6 * max(1.0, abs(eta[i]))
        rise = family.log_partition(eta + step) - family.log_partition(eta - step)
        assert rise / (2 * step[i]) == pytest.approx(expected[i], rel=1e-3, abs=1e-3)


def test_the_layout_of_gaussians_is_the_sample_itself():
    X, spread = np.ones((3, 2)), np.zeros((3, 2))
    layout = Layout(("gaussian", "lognormal"))
    rows, within = layout.columns(X, spread)
    assert rows is X
    assert within is spread
    assert (layout.width, layout.n_apart, layout.n_features) == (2, 0, 2)
