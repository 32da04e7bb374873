"""Explanations against the mixture as it is described to people: scipy's densities, and integrals over one feature."""

from sys import float_info

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t, norm, t

from core import Detector, DetectorConfig, Feature, InvalidObservation, NotReady
from core.families.base import NodeDensities
from tests.core.samples import VARIANTS, clusters, detector

FAMILIES = ["gaussian", "gaussian_diagonal"]
UNITS, ORIGIN = np.array([1e-6, 3.0, 1e9]), np.array([5.0, -1e6, 1e12])


def trained(m=3, n=400, **fields):
    model = detector(m, **fields)
    model.observe(clusters(n, m), np.arange(float(n)))
    return model


class Described:
    """The mixture by its description, node by node in plain loops; features are scaled."""

    def __init__(self, model):
        seen = model.describe()
        self.nodes = seen["nodes"]
        self.location, self.scale = (np.array(seen["scaling"][name]) for name in ("location", "scale"))
        self.diagonal = model.config.family == "gaussian_diagonal"

    def scaled(self, X):
        return (X - self.location) / self.scale

    def terms(self, Z, features):
        """Weight times density of the features: (n, N)."""
        return np.stack([node["weight"] * self.density(node, Z, features) for node in self.nodes], axis=1)

    def density(self, node, Z, features):
        if not features:
            return np.ones(len(Z))
        mean = self.scaled(np.array(node["mean"]))[features]
        covariance = (np.array(node["covariance"]) / self.scale / self.scale[:, None])[np.ix_(features, features)]
        freedom, Z = node["degrees_of_freedom"], Z[:, features]
        if self.diagonal:
            each = norm if freedom is None else t(freedom)
            deviation = np.sqrt(np.diag(covariance))
            return (each.pdf((Z - mean) / deviation) / deviation).prod(1)
        whole = multivariate_normal(mean, covariance) if freedom is None else multivariate_t(mean, covariance, freedom)
        return whole.pdf(Z).reshape(len(Z))

    def log_density(self, z, features):
        return float(np.log(self.terms(z[None], features).sum()))

    def contribution(self, x, j):
        """By the marginals, of what is known."""
        known = np.flatnonzero(~np.isnan(x)).tolist()
        z = self.scaled(x)
        return self.log_density(z, [k for k in known if k != j]) - self.log_density(z, known)

    def expected(self, x, j):
        """The mean of feature j given what else is known, by an integral over it."""
        moved = np.tile(self.scaled(x), (20001, 1))
        moved[:, j] = values = np.linspace(-100, 100, len(moved))
        density = self.terms(moved, sorted({*np.flatnonzero(~np.isnan(x)).tolist(), j})).sum(1)
        return float((values * density).sum() / density.sum()) * self.scale[j] + self.location[j]


@pytest.mark.parametrize("fields", [{}, {"profile": "paper", "learn_from": "all"}], ids=["student", "gaussian"])
@pytest.mark.parametrize("family", FAMILIES)
def test_contributions_are_those_of_the_marginals(family, fields):
    model = trained(family=family, **fields)
    described = Described(model)
    X = clusters(40, seed=1)
    X = X[model.score(X) < 100][:12]
    found = model.explain(X)
    assert len(described.nodes) > 3
    for x, contribution in zip(X, found.contribution, strict=True):
        expected = [described.contribution(x, j) for j in range(3)]
        np.testing.assert_allclose(contribution, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_expectations_are_integrals_over_the_feature(family):
    model = trained(family=family)
    described = Described(model)
    X = np.array([[2.1, -1.8, 2.2], [-2.0, 0.4, 6.0], [0.1, np.nan, 0.2], [np.nan, np.nan, -2.0]])
    found = model.explain(X)
    for x, expected in zip(X, found.expected, strict=True):
        by_integral = [described.expected(x, j) for j in range(3)]
        np.testing.assert_allclose(expected, by_integral, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_missing_features_are_left_out_of_both_scores(family):
    model = trained(family=family)
    described = Described(model)
    X = clusters(60, seed=2, missing=0.4)
    X = X[np.nanmax(np.abs(X), axis=1) < 8][:12]
    found = model.explain(X)
    np.testing.assert_array_equal(np.isnan(found.contribution), np.isnan(X))
    np.testing.assert_array_equal(found.score, model.score(X))
    for x, contribution in zip(X, found.contribution, strict=True):
        for j in np.flatnonzero(~np.isnan(x)):
            assert contribution[j] == pytest.approx(described.contribution(x, j), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("m", [1, 4])
def test_leaving_out_is_conditioning_on_the_others(m, fields):
    """The interface's own slow way, for every kind of node density."""
    model = detector(m, **fields)
    out = model.observe(clusters(150, m), np.arange(150.0))
    if model.config.learn_from == "labelled_normal":
        model.feedback(out.records, [False] * 150)
    Z = clusters(30, m, seed=3)
    fast = model.state.density.densities.left_out(Z)
    if m == 1:
        np.testing.assert_allclose(fast.log_density, 0.0, atol=1e-12)
        np.testing.assert_allclose(
            fast.mean[:, 0], np.broadcast_to(model.state.density.densities.moments()[0][:, 0], fast.mean[:, 0].shape)
        )
        return
    slow = NodeDensities.left_out(model.state.density.densities, Z)
    np.testing.assert_allclose(fast.log_density, slow.log_density, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(fast.mean, slow.mean, rtol=1e-7, atol=1e-7)


def test_with_one_feature_the_contribution_is_the_score():
    model = trained(1, scaling="none")
    X = np.array([[0.3], [-7.0], [1e6]])
    found = model.explain(X)
    np.testing.assert_allclose(found.contribution[:, 0], model.score(X), rtol=1e-12)
    mean = sum(node["weight"] * node["mean"][0] for node in model.describe()["nodes"])
    np.testing.assert_allclose(found.expected[:, 0], mean, rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_units_move_expectations_and_no_contribution(family):
    plain, other = trained(family=family), detector(3, family=family)
    other.observe(clusters(400) * UNITS + ORIGIN)
    X = clusters(30, seed=1)
    one, two = plain.explain(X), other.explain(X * UNITS + ORIGIN)
    np.testing.assert_allclose(one.contribution, two.contribution, atol=1e-2)
    np.testing.assert_allclose(one.expected * UNITS + ORIGIN, two.expected, rtol=1e-2)
    np.testing.assert_allclose(two.score - one.score, np.log(UNITS).sum(), atol=1e-2)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [1e3, 1e9, 1e18, 1e60])
def test_what_is_left_without_a_huge_feature_is_exact(family, size):
    """Left to |W e|^2 - z_j^2 / P_jj, what remains beside 1e9 deviations is wrong by a hundred."""
    model = trained(family=family)
    usual, huge = np.array([[0.2, 0.1, -0.2]]), np.array([[0.2, size, -0.2]])
    densities = model.state.density.densities
    np.testing.assert_allclose(
        densities.left_out(huge).log_density[:, 1], densities.left_out(usual).log_density[:, 1], rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(densities.left_out(huge).mean[:, 1], densities.left_out(usual).mean[:, 1], rtol=1e-9)
    one, two = model.explain(huge), model.explain(usual)
    assert one.expected[0, 1] == pytest.approx(two.expected[0, 1], rel=1e-9)
    assert one.contribution[0].argmax() == 1
    if family == "gaussian_diagonal":
        assert one.contribution[0, 1] > 5 * np.abs(one.contribution[0, [0, 2]]).max()


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS)
def test_explanations_are_finite_whatever_comes(fields):
    model = trained(**fields)
    X = np.array([[1e308, -1e308, 1e308], [1e308, 0.0, np.nan], [0.0, 1e-308, 0.0], [1e150, 1e50, -1e20]])
    for name, values in (("contribution", model.explain(X).contribution), ("expected", model.explain(X).expected)):
        assert (np.isfinite(values) | ((name == "contribution") & np.isnan(X))).all(), name
    assert (model.explain(X[:1]).contribution == float_info.max).all()


def test_the_path_leads_to_the_likeliest_node():
    model = trained()
    described = Described(model)
    X = clusters(50, seed=1)
    X = X[model.score(X) < 50]
    found = model.explain(X)
    for x, path in zip(X, found.path, strict=True):
        assert path[-1] == described.terms(described.scaled(x[None]), [0, 1, 2]).argmax()
        assert [described.nodes[k]["level"] for k in path] == list(range(len(path)))
        assert [described.nodes[k]["parent"] for k in path] == [None, *path[:-1]]
    assert len({tuple(path) for path in found.path}) > 2


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_observing_with_explanations_gives_the_same_answers_and_state(fields, missing):
    X = clusters(300, missing=missing)
    plain, explaining = detector(3, **fields), detector(3, **fields)
    for rows in (slice(50), slice(50, 51), slice(51, 300)):
        times = np.arange(300.0)[rows]
        one, two = plain.observe(X[rows], times), explaining.observe(X[rows], times, explain=True)
        np.testing.assert_array_equal(one.score, two.score)
        assert one.explanation is None
        assert one.records.to_bytes() == two.records.to_bytes()
    assert plain.to_bytes() == explaining.to_bytes()


def test_flagged_samples_are_explained_by_the_model_that_scored_them():
    """One by one, explain before observe says the same as observing a batch that goes through many rounds."""
    X = clusters(300, missing=0.1)
    X[200::15] *= 30
    batched, single = detector(3), detector(3)
    out = batched.observe(X, explain=True)
    flagged = np.flatnonzero(out.is_anomaly)
    np.testing.assert_array_equal(out.explanation.score, out.score[flagged])
    assert len(flagged) > 2
    assert len(out.explanation.path) == len(flagged)
    rows = []
    for i, x in enumerate(X):
        if i in flagged:
            rows.append(single.explain(x[None]))
        single.observe(x[None])
    np.testing.assert_array_equal(out.explanation.contribution, np.concatenate([row.contribution for row in rows]))
    np.testing.assert_array_equal(out.explanation.expected, np.concatenate([row.expected for row in rows]))
    assert out.explanation.path == [row.path[0] for row in rows]
    late = batched.explain(X[flagged])
    assert not np.allclose(late.contribution, out.explanation.contribution, equal_nan=True)


def test_nothing_flagged_is_an_explanation_of_nothing():
    model = detector(3)
    for n in (0, 10, 30):
        found = model.observe(np.zeros((n, 3)), explain=True).explanation
        assert found.contribution.shape == found.expected.shape == (0, 3)
        assert found.path == []


def test_what_cannot_be_scored_cannot_be_explained():
    model = detector(3)
    with pytest.raises(NotReady):
        model.explain(np.zeros((1, 3)))
    model.observe(clusters(100))
    assert model.explain(np.zeros((0, 3))).contribution.shape == (0, 3)
    with pytest.raises(InvalidObservation):
        model.explain([[1.0, np.inf, 0.0]])


def test_what_labels_add_is_told_apart_from_what_features_do():
    model = detector(3)
    X = clusters(300)
    records = model.observe(X).records
    queries = clusters(20, seed=1, missing=0.1)
    before = model.explain(queries)
    assert not before.labels_contribution.any()
    assert not before.nearest_anomaly.any()
    known = np.array([101, 107, 133])
    model.feedback(records[known - 1], [True] * 3)
    found = model.explain(queries)
    np.testing.assert_allclose(found.labels_contribution, model.score(queries) + model.log_density(queries), atol=1e-12)
    assert np.abs(found.labels_contribution).max() > 0.1
    Z, at = model.state.scaling.apply(queries), model.state.scaling.apply(X[known - 1])
    complete = ~np.isnan(Z).any(1) & (np.abs(Z).max(1) < 4)  # as they are learned
    nearest = known[((Z[:, None] - at) ** 2).sum(2).argmin(1)]
    assert complete.sum() > 5
    assert np.array_equal(found.nearest_anomaly[complete], nearest[complete])
    model.renumber(1001)
    assert np.array_equal(model.explain(queries).nearest_anomaly, found.nearest_anomaly + 1000)


def test_features_of_every_kind_are_explained():
    rng = np.random.default_rng(0)
    columns = {
        "gaussian": rng.normal(size=300),
        "poisson": rng.poisson(5, 300),
        "lognormal": np.exp(rng.normal(size=300)),
        "exponential": rng.exponential(3, 300),
        "bernoulli": rng.integers(0, 2, 300),
    }
    X = np.column_stack(list(columns.values())).astype(float)
    model = Detector(DetectorConfig(features=tuple(Feature(kind, kind) for kind in columns)))
    model.observe(X)
    odd = np.tile([0.0, 5.0, 1.0, 3.0, 1.0], (4, 1))
    odd[[0, 1, 2], [0, 1, 3]] = 40.0, 60.0, 90.0
    odd[3, [0, 2]] = np.nan  # all of the Gaussian block
    found = model.explain(odd)
    assert found.contribution[:3].argmax(1).tolist() == [0, 1, 3]
    assert (np.isnan(found.contribution) == np.isnan(odd)).all()
    assert np.isfinite(found.expected).all()
    assert found.expected[1, 1] == pytest.approx(5, abs=1)
    assert (found.expected[:, 2:] >= 0).all()
