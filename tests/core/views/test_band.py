"""The expected band: quantiles of the conditional density, for every kind of value and of context."""

import time

import numpy as np
import pytest
from scipy.stats import multivariate_t, norm, t

from core import Detector, DetectorConfig, InvalidObservation, NotReady
from core.kinds import KINDS

DAY, MONDAY = 86_400.0, 1_736_121_600.0
LEVELS = (0.05, 0.5, 0.95)


def seasonal(n: int, seed: int, step: float = 900.0) -> tuple[np.ndarray, np.ndarray]:
    """A load by the hour of the day, and its latency; the times."""
    rng, times = np.random.default_rng(seed), MONDAY + step * np.arange(float(n))
    load = 40 - 30 * np.cos(2 * np.pi * times / DAY) + 3 * rng.normal(size=n)
    return np.column_stack([10 + 0.5 * load + rng.normal(size=n), load]), times


def detector(roles: tuple[str, str] = ("value", "value"), **fields) -> Detector:
    features = [{"name": name, "role": role} for name, role in zip(("latency", "load"), roles, strict=True)]
    return Detector(DetectorConfig(features=features, **fields))


def trained(*args, n: int = 2500, **fields) -> Detector:
    model = detector(*args, **fields)
    model.observe(*seasonal(n, 0))
    return model


def inside(x: np.ndarray, band: np.ndarray) -> float:
    return float(((x >= band[:, 0]) & (x <= band[:, -1])).mean())


CALENDAR = {"calendar": {"periods": ["day"]}}


@pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])
def test_fresh_rows_lie_inside_of_the_band_of_their_time(family):
    model = trained(family=family, **CALENDAR)
    X, times = seasonal(1500, 1)
    for feature in (0, 1):
        band = model.band(feature).quantiles(LEVELS, times=times)
        assert 0.8 <= inside(X[:, feature], band) <= 0.95
        flat = model.band(feature).quantiles(LEVELS, times=[np.nan])
        assert np.mean(band[:, 2] - band[:, 0]) < 0.5 * (flat[0, 2] - flat[0, 0])


def test_fresh_rows_lie_inside_of_the_band_of_their_context():
    model = trained(("value", "context"))
    X, _ = seasonal(1500, 1)
    band = model.band(0).quantiles(LEVELS, X[:, 1:])
    assert 0.8 <= inside(X[:, 0], band) <= 0.95
    assert np.mean(band[:, 2] - band[:, 0]) < 4.5
    assert np.corrcoef(band[:, 1], X[:, 1])[0, 1] > 0.99


def test_the_band_of_a_stream_without_context_is_flat():
    model = trained()
    (band,) = model.band(0).quantiles((0.1, 0.9))
    X, _ = seasonal(1500, 1)
    assert 0.7 <= inside(X[:, 0], np.tile(band, (1500, 1))) <= 0.9


def test_quantiles_rise_with_the_level_in_the_order_they_were_asked_for():
    model = trained(("value", "context"), **CALENDAR)
    X, times = seasonal(60, 2)
    levels = np.random.default_rng(0).permutation(np.linspace(0.001, 0.999, 41))
    band = model.band(0).quantiles(levels, X[:, 1:], times)
    rising = band[:, np.argsort(levels)]
    assert (np.diff(rising, axis=1) >= 0).all()
    assert (np.diff(rising[:, ::5], axis=1) > 0).all()
    alone = np.concatenate([model.band(0).quantiles([level], X[:, 1:], times) for level in levels], 1)
    np.testing.assert_allclose(band, alone, atol=1e-4)


@pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])
def test_one_node_has_the_quantiles_of_its_student_t(family):
    model = trained(("value", "context"), max_nodes=1, family=family)
    (node,) = model.describe()["nodes"]
    mean, scale, freedom = np.array(node["mean"]), np.array(node["covariance"]), node["degrees_of_freedom"]
    given, levels = 55.0, np.array([0.03, 0.4, 0.9])
    if family == "gaussian":
        center = mean[0] + scale[0, 1] / scale[1, 1] * (given - mean[1])
        squared = (given - mean[1]) ** 2 / scale[1, 1]
        left = (scale[0, 0] - scale[0, 1] ** 2 / scale[1, 1]) * (freedom + squared) / (freedom + 1)
        expected = center + np.sqrt(left) * t(freedom + 1).ppf(levels)
    else:
        expected = mean[0] + np.sqrt(scale[0, 0]) * t(freedom).ppf(levels)
    (told,) = model.band(0).quantiles(levels, [[given]])
    np.testing.assert_allclose(told, expected, rtol=1e-4)
    (unknown,) = model.band(0).quantiles(levels, [[np.nan]])
    np.testing.assert_allclose(unknown, mean[0] + np.sqrt(scale[0, 0]) * t(freedom).ppf(levels), rtol=1e-4)


def test_the_quantile_of_a_mixture_is_where_its_distribution_reaches_the_level():
    """By the density that the detector gives, summed over many points."""
    model = trained(("value", "context"), **CALENDAR)
    X, times = seasonal(3, 5)
    band = model.band(0).quantiles(LEVELS, X[:, 1:], times)
    for row in range(3):
        grid = np.linspace(-200, 300, 100_001)
        points = np.column_stack([grid, np.full(len(grid), X[row, 1])])
        density = np.exp(model.log_density(points, np.full(len(grid), times[row])))
        cdf = (np.cumsum(density) - density / 2) * (grid[1] - grid[0])
        np.testing.assert_allclose(np.interp(band[row], grid, cdf), LEVELS, atol=1e-3)


def two_machines(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    busy = rng.random(n) < 0.4
    columns = {
        "gaussian": rng.normal(size=n) + 5 * busy,
        "lognormal": np.exp(rng.normal(size=n) * 0.4 + 2 * busy),
        "gamma": rng.gamma(3.0, 1 + 4.0 * busy),
        "exponential": rng.exponential(1 + 9.0 * busy),
        "poisson": rng.poisson(4 + 30 * busy),
        "bernoulli": rng.random(n) < 0.1 + 0.8 * busy,
        "categorical": np.where(rng.random(n) < 0.9, 1, 0) + 2 * busy,
    }
    return np.column_stack([*(columns[kind] for kind in KINDS), busy]).astype(float)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_band_given_a_class_of_machines(kind):
    at = list(KINDS).index(kind)
    features = [{"name": "x", "kind": kind}, {"name": "busy", "kind": "bernoulli", "role": "context"}]
    model = Detector(DetectorConfig(features=features))
    model.observe(two_machines(2500, 0)[:, [at, 7]])
    X = two_machines(3000, 1)[:, [at, 7]]
    band = model.band(0).quantiles((0.05, 0.5, 0.95), X[:, 1:])
    assert np.isfinite(band).all()
    assert KINDS[kind].inside(band).all()
    assert (np.diff(band, axis=1) >= 0).all()
    x, busy = X[:, 0], X[:, 1] == 1
    for rows in (busy, ~busy):
        low, middle, high = band[rows][0]
        if KINDS[kind].whole:  # the least value that so many do not exceed
            assert (x[rows] <= high).mean() >= 0.92
            assert (x[rows] < high).mean() <= 0.97
            assert (x[rows] <= middle).mean() >= 0.45
            assert (x[rows] < low).mean() <= 0.08
        else:
            assert 0.8 <= ((x[rows] >= low) & (x[rows] <= high)).mean() <= 0.95
            assert 0.35 <= (x[rows] <= middle).mean() <= 0.65


@pytest.mark.parametrize("kind", ["gaussian", "lognormal", "poisson", "gamma"])
def test_values_of_a_kind_beside_context_of_many(kind):
    """With every feature of another kind as context, some of it missing."""
    features = [{"name": k, "kind": k, "role": "value" if k == kind else "context"} for k in KINDS]
    X, fresh = (two_machines(n, seed)[:, :7] for n, seed in ((2500, 0), (600, 1)))
    model = Detector(DetectorConfig(features=features, calendar={"periods": ["week"]}))
    model.observe(X, MONDAY + 60.0 * np.arange(2500))
    at = list(KINDS).index(kind)
    contexts, times = np.delete(fresh, at, 1), MONDAY + 60.0 * np.arange(600)
    contexts[::3, 2], contexts[::7], times[::5] = np.nan, np.nan, np.nan
    band = model.band(at).quantiles((0.05, 0.95), contexts, times)
    assert 0.8 <= inside(fresh[:, at], band) <= 0.97
    part = model.band(at).quantiles((0.05, 0.95), contexts[10:20], times[10:20])
    np.testing.assert_allclose(part, band[10:20], rtol=1e-4)


def test_the_paper_has_the_quantiles_of_gaussians():
    model = Detector(DetectorConfig(n_features=1, profile="paper", learn_from="all", max_nodes=1))
    model.observe(np.random.default_rng(0).normal(2.0, 0.5, (300, 1)))
    (node,) = model.describe()["nodes"]
    expected = norm(node["mean"][0], np.sqrt(node["covariance"][0][0])).ppf([0.2, 0.9])
    np.testing.assert_allclose(model.band(0).quantiles([0.2, 0.9])[0], expected, rtol=1e-4)


def test_a_band_keeps_the_model_that_it_was_made_of():
    model = trained(**CALENDAR)
    band, times = model.band(0), MONDAY + 3600.0 * np.arange(24)
    before = band.quantiles(LEVELS, times=times)
    X, later = seasonal(600, 3)
    model.observe(X + 500.0, later + 30 * DAY)
    assert np.array_equal(band.quantiles(LEVELS, times=times), before)
    assert not np.array_equal(model.band(0).quantiles(LEVELS, times=times), before)


def test_a_day_at_five_minutes_takes_less_than_a_tenth_of_a_second():
    model = trained(n=4000, calendar={"periods": ["day", "week"]})
    assert model.n_nodes > 1
    times, took = MONDAY + 60 * DAY + 300.0 * np.arange(288), []
    for _ in range(5):
        start = time.process_time()
        model.band(1).quantiles(LEVELS, times=times)
        took.append(time.process_time() - start)
    assert min(took) < 0.1


@pytest.mark.parametrize(
    ("field", "of", "asked"),
    [
        ("feature", 1, {}),
        ("feature", 2, {}),
        ("feature", -1, {}),
        ("levels", 0, {"levels": []}),
        ("levels", 0, {"levels": [0.0, 0.5]}),
        ("levels", 0, {"levels": [1.0]}),
        ("levels", 0, {"levels": [5e-324, 0.5]}),
        ("levels", 0, {"levels": [1 - 2**-53]}),
        ("levels", 0, {"levels": [np.nan]}),
        ("levels", 0, {"levels": 0.5}),
        ("levels", 0, {"levels": ["0.5"]}),
        ("contexts", 0, {"contexts": [[1.0, 2.0]]}),
        ("contexts", 0, {"contexts": [[np.inf]]}),
        ("contexts", 0, {"contexts": [["a"]]}),
        ("times", 0, {"contexts": [[1.0]], "times": [0.0, 1.0]}),
        ("times", 0, {"times": [np.inf]}),
        ("times", 0, {"times": 5.0}),
    ],
)
def test_what_is_wrong_is_refused_by_name(field, of, asked):
    model = trained(("value", "context"), n=100, **CALENDAR)
    with pytest.raises(InvalidObservation) as caught:
        model.band(of).quantiles(**({"levels": LEVELS} | asked))
    assert caught.value.field == field


def test_a_context_that_its_kind_excludes_is_refused_by_place():
    features = [{"name": "x"}, {"name": "n", "kind": "poisson", "role": "context"}]
    model = Detector(DetectorConfig(features=features))
    model.observe(np.random.default_rng(0).poisson(4.0, (100, 2)).astype(float))
    with pytest.raises(InvalidObservation) as caught:
        model.band(0).quantiles(LEVELS, [[1.0], [1.5]])
    assert (caught.value.field, caught.value.row, caught.value.column) == ("contexts", 1, 0)


def test_there_is_no_band_before_the_warm_up_is_over():
    with pytest.raises(NotReady):
        detector().band(0)


def test_far_contexts_have_finite_bands():
    model = trained(("value", "context"), **CALENDAR)
    band = model.band(0).quantiles(
        (1e-6, 0.5, 1 - 1e-6), [[1e308], [-1e308], [1e12], [np.nan]], [1e15, -1e15, np.nan, 0.0]
    )
    assert np.isfinite(band).all()
    assert (np.diff(band, axis=1) >= 0).all()


def test_joint_and_marginal_agree_with_the_band_of_one_node():
    """The conditional law by scipy's joint and marginal Student t."""
    model = trained(("value", "context"), max_nodes=1)
    (node,) = model.describe()["nodes"]
    mean, scale, freedom = np.array(node["mean"]), np.array(node["covariance"]), node["degrees_of_freedom"]
    (q,) = model.band(0).quantiles([0.3], [[20.0]])
    grid = np.linspace(-300, 300, 200_001)
    joint = multivariate_t(mean, scale, freedom).pdf(np.column_stack([grid, np.full(len(grid), 20.0)]))
    cdf = np.cumsum(joint) * (grid[1] - grid[0]) / multivariate_t(mean[1:], scale[1:, 1:], freedom).pdf(20.0)
    assert np.interp(q[0], grid, cdf) == pytest.approx(0.3, abs=1e-3)
