"""The density of values given their context: joint over marginal, whatever is missing."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from core import Detector, DetectorConfig
from core.mixture.log_sum import log_sum_exp
from tests.core.samples import clusters

KINDS = ("gaussian", "lognormal", "gamma", "poisson", "categorical", "gaussian")


def two_clusters(n: int, seed: int = 0) -> np.ndarray:
    """Load and latency of two machines, with a class and counts."""
    rng = np.random.default_rng(seed)
    cluster = rng.random(n) < 0.4
    load = rng.normal(size=n) + 6 * cluster
    others = [np.exp(0.3 * load + 0.1 * rng.normal(size=n)), rng.gamma(2.0 + 5 * cluster), rng.poisson(3 + 9 * cluster)]
    value = np.where(cluster, 12 - load, load) + rng.normal(size=n)
    return np.column_stack([value, *others, 1 + cluster, load]).astype(float)


def trained(roles: str, n: int = 600, **fields) -> Detector:
    """v is a value, c is context."""
    features = [
        {"name": f"f{i}", "kind": kind, "role": {"v": "value", "c": "context"}[role]}
        for i, (kind, role) in enumerate(zip(KINDS, roles, strict=True))
    ]
    model = Detector(DetectorConfig(features=features, **fields))
    model.observe(two_clusters(n))
    assert model.n_nodes > 1
    return model


def by_hand(model: Detector, Z: np.ndarray) -> np.ndarray:
    """log p of what is known of scaled samples, one by one, by the marginal of it; 0 where nothing is."""
    densities, out = model.state.density.densities, []
    for z in Z:
        known = np.flatnonzero(~np.isnan(z)).tolist()
        part = densities.marginal(known).log_density(z[None, known]) if known else np.zeros((1, model.n_nodes))
        out.append(log_sum_exp(part + model.state.density.log_weights)[0])
    return np.array(out)


@pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])
@pytest.mark.parametrize("roles", ["vvvvcc", "vccccv", "cvvvvv", "vccccc", "ccvccc", "cccvcc"])
def test_the_score_is_joint_over_marginal(roles, family):
    """With context missing here and there, or all of it; values are complete, so that nothing is expected of them."""
    model = trained(roles, family=family)
    X, context = two_clusters(60, seed=1), [i for i, role in enumerate(roles) if role == "c"]
    rng = np.random.default_rng(2)
    for column in context:
        X[rng.random(60) < 0.4, column] = np.nan
    X[5, context] = np.nan
    Z = model.state.scaling.apply(X)
    alone = np.where(np.isin(np.arange(6), context), Z, np.nan)
    expected = by_hand(model, Z) - by_hand(model, alone)
    told = model.state.density.log_density(Z)
    np.testing.assert_allclose(told, expected, rtol=1e-9, atol=1e-9)
    assert told[5] == pytest.approx(by_hand(model, Z[5:6])[0])
    volume = model.state.scaling.score(Z, told) + told
    np.testing.assert_allclose(model.score(X), volume - expected, rtol=1e-9, atol=1e-9)


def test_missing_values_are_expected_given_the_rest_and_missing_context_is_not():
    """A feature that is independent within each node adds its entropy there, if it is a value."""
    model = trained("vvvcvc")
    X = two_clusters(20, seed=3)
    missing_both, missing_value = X.copy(), X.copy()
    missing_both[:, [2, 3]] = missing_value[:, 2] = np.nan
    Z = model.state.scaling.apply(missing_both)
    densities = model.state.density.densities
    rest = densities.marginal([0, 1, 4, 5]).log_density(Z[:, [0, 1, 4, 5]])
    entropy = densities.predictives[0].expected()
    weights = model.state.density.log_weights
    expected = log_sum_exp(rest + entropy + weights) - log_sum_exp(
        densities.marginal([5]).log_density(Z[:, [5]]) + weights
    )
    np.testing.assert_allclose(model.state.density.log_density(Z), expected, rtol=1e-9)
    assert np.isfinite(model.score(missing_value)).all()


@pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])
@pytest.mark.parametrize("row", [0, 1, 2, 3])
def test_the_density_of_a_value_given_its_context_integrates_to_one(family, row):
    """Whatever the context, also one that was never seen; with weights that mistrust rare nodes."""
    model = trained("vccccc", family=family)
    x = two_clusters(8, seed=4)[row]
    if row == 2:
        x[3:] = np.nan
    if row == 3:
        x[5], x[4] = 40.0, 9.0

    def density(value: float) -> float:
        point = x.copy()
        point[0] = value
        return float(np.exp(model.log_density(point[None])[0]))

    edges = [-1e5, -1e3, -100.0, *np.linspace(-30, 60, 31), 100.0, 1e3, 1e5]
    total = sum(quad(density, a, b, limit=200)[0] for a, b in pairwise(edges))
    assert total == pytest.approx(1.0, abs=2e-4)


@pytest.mark.parametrize("unit", [1e-9, 1e6])
def test_the_unit_of_a_context_changes_no_score(unit):
    X = two_clusters(500)
    told = Detector(trained("vvvvcc").config).observe(X)
    X[:, 5] *= unit
    again = Detector(trained("vvvvcc").config).observe(X)
    np.testing.assert_allclose(again.score[told.ready], told.score[told.ready], atol=1e-6)
    assert np.array_equal(again.is_anomaly, told.is_anomaly)


def test_without_context_nothing_is_divided():
    X = clusters(300)
    plain, named = (Detector(DetectorConfig(**fields)) for fields in ({"n_features": 3}, {"features": NAMED}))
    assert np.array_equal(plain.observe(X).score, named.observe(X).score, equal_nan=True)
    arrays = [{name: a.tobytes() for name, a in one.state.state().items()} for one in (plain, named)]
    assert arrays[0] == arrays[1]
    Z = plain.state.scaling.apply(X)
    assert np.array_equal(plain.state.density.log_density(Z), by_model(plain, Z))


NAMED = [{"name": name, "role": "value"} for name in "abc"]


def by_model(model: Detector, Z: np.ndarray) -> np.ndarray:
    return log_sum_exp(model.state.density.densities.log_density(Z) + model.state.density.log_weights)
