"""Every numeric fault found, here or elsewhere, with a sentence on what went wrong. Warnings are errors."""

import os
from typing import Any

import numpy as np
import pytest

from core import Detector, DetectorConfig
from core.growth.evidence.search import best_hyperplane
from core.mixture.nodes import VARIANCE_FLOOR
from tests.core.samples import clusters, detector

FAMILIES = ["gaussian", "gaussian_diagonal"]
ROUNDING = 1e-12  # outliers of 1e100 in two features at once are dependent to the last bit


def assert_sound(model: Detector) -> None:
    """Weights sum to one, every covariance has a Cholesky factor, and no variance is below the floor."""
    seen = model.describe()
    nodes, floor = seen["nodes"], None
    if model.config.profile == "default":
        with np.errstate(under="ignore", over="ignore"):
            floor = np.minimum(VARIANCE_FLOOR * np.array(seen["scaling"]["scale"]) ** 2, 1e300)
    assert sum(n["weight"] for n in nodes) == pytest.approx(1.0)
    for node in nodes:
        covariance = np.array(node["covariance"])
        deviations = np.sqrt(np.diag(covariance))
        assert (deviations > 0).all()
        if floor is not None:
            assert (np.diag(covariance) >= 0.999 * floor).all()
        if deviations.max() < 1e154:  # larger variances are shown as the largest double
            correlation = covariance / deviations[:, None] / deviations
            np.linalg.cholesky(correlation + ROUNDING * np.eye(len(correlation)))


def assert_farther_is_never_likelier(model: Detector, directions: np.ndarray) -> None:
    """From ten times the reach of all nodes on, log density falls along every ray."""
    nodes = model.describe()["nodes"]
    means = np.array([n["mean"] for n in nodes])
    reach = np.abs(means - means[0]) + np.sqrt([np.diag(n["covariance"]) for n in nodes])
    for direction in directions:
        ray = means[0] + np.logspace(1, 12, 25)[:, None] * direction * np.minimum(reach.max(0), 1e200)
        assert (np.diff(model.score(ray)) >= 0).all()


def fed(X: np.ndarray, **fields: Any) -> tuple[Detector, Any]:
    model = detector(X.shape[1], **fields)
    out = model.observe(X)
    assert np.isfinite(out.score[out.ready]).all()
    assert np.isfinite(out.threshold[out.ready]).all()
    if model.ready:
        assert_sound(model)
    return model, out


@pytest.mark.parametrize("family", FAMILIES)
def test_n1_huge_offsets_change_nothing(family):
    """Sums of squares read the variance of epoch milliseconds as 2.1e9 where 8.3e8 is right."""
    rng = np.random.default_rng(0)
    i = np.arange(400)
    f1 = 1764278400000 + 250 * i + rng.integers(-20, 21, 400)
    A = np.stack([rng.integers(-1000, 1001, 400), f1, np.full(400, 1000000000)], axis=1)
    A = np.vstack([A, A[-1] + [0, 0, 1], A[-1] + [0, 10_000_000, 0]])
    (a, at_a), (b, at_b) = fed(A, family=family), fed(A - [0, 1764278400000, 1000000000], family=family)
    ready = at_a.ready
    assert np.abs(at_a.score[ready] - at_b.score[ready]).max() <= 1e-6
    assert np.array_equal(at_a.is_anomaly, at_b.is_anomaly)
    assert at_a.is_anomaly[-2:].all()
    for one, other in zip(a.describe()["nodes"], b.describe()["nodes"], strict=True):
        assert one["covariance"][1][1] == pytest.approx(other["covariance"][1][1], rel=1e-6)
    root = np.array(a.describe()["nodes"][0]["covariance"])
    assert root[1, 1] == pytest.approx(np.var(A[:400, 1]), rel=0.2)


@pytest.mark.parametrize("family", FAMILIES)
def test_n3_a_noisy_stretch_followed_by_a_flat_one(family):
    """Forgotten raw moments read variances below zero on a forward-filled series, and their roots are NaN."""
    noisy = 3.2e-5 + 1e-6 * np.random.default_rng(0).normal(size=(200, 1))
    model, _ = fed(noisy, half_life_samples=20.0, family=family)
    nodes = len(model.describe()["nodes"])
    flat = model.observe(np.full((2000, 1), 3.2e-5))
    assert np.isfinite(flat.score).all()
    assert np.ptp(flat.score[1000:]) < 1e-6  # no way to minus infinity
    seen = model.describe()
    floor = VARIANCE_FLOOR * seen["scaling"]["scale"][0] ** 2
    assert min(n["covariance"][0][0] for n in seen["nodes"]) >= floor
    assert len(seen["nodes"]) == nodes
    assert model.observe([[3.3e-5]]).is_anomaly[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_n4a_an_unsigned_minus_one_is_flagged_and_forgotten(family):
    """2^64 - 1 made variances overflow and gave 100000 a z of -0.05: the sentinel hid every later fault."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(500, 20, 300), [2**64 - 1], rng.normal(500, 20, 100), [100000]])[:, None]
    model, out = fed(X, family=family)
    assert out.is_anomaly[[300, 401]].all()
    assert out.score[301:401].mean() < out.score[200:300].mean() + 1
    assert out.score[301:401].max() < out.score[200:300].max() + 4
    assert out.is_anomaly[301:401].mean() < 0.05
    # (d) labelled anomalous, it is out of the statistics again: the root's are those of the rest
    model.feedback(out.records[np.array([300, 401])], [True, True])
    root, rest = model.describe()["nodes"][0], np.delete(X, [300, 401])
    assert root["count"] == 400
    assert root["mean"][0] == pytest.approx(rest.mean(), abs=0.1)
    assert root["covariance"][0][0] == pytest.approx(rest.var(), rel=0.1)  # the prior was chosen with them
    model.observe(rng.normal(900, 20, 600)[:, None])
    assert len(model.describe()["nodes"]) > 1  # the search for hyperplanes still works


def test_n4b_doubles_of_any_size_have_a_density():
    """Squares of 1e200 overflow, and log-sum-exp of all minus infinities gave NaN."""
    model, _ = fed(np.random.default_rng(0).normal(size=(300, 2)))
    scores = model.score([[3.0, 0.0], [1e15, 0.0], [1e99, 0.0], [1e200, 0], [1e308, -1e308], [-1.7e308, 1.7e308]])
    assert np.isfinite(scores).all()
    assert (np.diff(scores) >= 0)[:4].all()
    out = model.observe([[1e308, -1e308]] * 3)
    assert np.isfinite(out.score).all()
    assert out.is_anomaly.all()
    assert_sound(model)


@pytest.mark.parametrize("family", FAMILIES)
def test_n4c_a_tight_cluster_in_many_features(family):
    """Without the shift by the maximum a density of e^740 overflows exp."""
    X = np.random.default_rng(0).normal(0, 1e-5, size=(300, 70))
    model, _ = fed(X, family=family)
    assert model.log_density(X.mean(0))[0] == pytest.approx(740, abs=20)


def test_n6a_two_equal_first_samples():
    """They divided by zero, or made a centroid NaN."""
    for fields in ({}, {"profile": "paper", "learn_from": "all"}, {"scaling": "none"}):
        fed(np.full((2, 3), 7.0), **fields)
        fed(np.vstack([np.full((2, 3), 7.0), clusters(60)]), **fields)


def test_n6b_a_pile_of_copies_does_not_make_its_neighbours_the_strangest():
    """Near neighbours of 64 equal samples scored above the far points."""
    X = np.concatenate([np.ones(64), 1 + np.linspace(0.1, 0.2, 30), 1 + np.linspace(10, 100, 5)])[:, None]
    _, out = fed(X)
    assert out.score[94:].min() > out.score[64:94].max()


def test_n6c_near_duplicates_leave_no_empty_child_and_no_hyperplane_without_direction():
    """Two values 1e-12 apart at 21.5: near-copies broke a tree insert."""
    X = np.where(np.arange(500) % 2, 21.5, 21.5 + 1e-12)[:, None]
    model, _ = fed(X)
    seen = model.describe()
    assert min(n["count"] for n in seen["nodes"]) > 0
    assert all(np.any(h["normal"]) for h in seen["hyperplanes"])


def test_n6d_equal_rows_longer_than_the_warmup():
    """A stream that begins with 38 equal rows has no spread to scale by; the next row must have a score."""
    row = [5.84, 3.1, 0.2]
    model, _out = fed(np.tile(row, (38, 1)))
    assert model.ready
    assert np.isfinite(model.observe([[5.9, 3.0, 0.2]]).score).all()


def test_n7_on_a_monotonous_stream_mild_and_gross_differ():
    """After a thousand equal triples one unit more had the top score, so mild and gross looked alike."""
    base, mild, gross = [5.0, 10, 2], [5.0, 10, 3], [5.0, 10, 2000]
    model, _ = fed(np.tile(base, (1000, 1)))
    small, large = model.observe([mild]), model.observe([gross])
    assert large.score[0] > 3 * small.score[0]
    assert large.score[0] < 1e4
    assert small.is_anomaly[0]
    mixed = np.tile(base, (660, 1))
    mixed[5::11] = mild
    assert np.isfinite(model.observe(mixed).score).all()
    assert not model.observe([mild]).is_anomaly[0]
    assert model.observe([gross]).is_anomaly[0]


@pytest.mark.parametrize("learn_from", ["all", "decided_normal"])
def test_n8_the_second_anomaly_does_not_hide_behind_the_first(learn_from):
    """Anomaly, one normal, the same anomaly again: only the first was reported."""
    rng = np.random.default_rng(0)
    model, _ = fed(rng.normal(size=(1000, 2)), learn_from=learn_from)
    nodes = len(model.describe()["nodes"])
    rows = np.vstack([[8, 8], rng.normal(size=(1, 2)), [8, 8], rng.normal(size=(3, 2)), [8, 8]])
    out = model.observe(rows)
    assert np.flatnonzero(out.is_anomaly).tolist() == [0, 2, 6]
    assert len(model.describe()["nodes"]) == nodes
    model.observe(rng.normal(size=(50, 2)))
    result = model.feedback(out.records[np.array([0, 2, 6])], [True] * 3)
    assert result.retracted.tolist() == [learn_from == "all", False, False]  # the others were held back
    assert_sound(model)


@pytest.mark.parametrize("family", FAMILIES)
def test_n9a_one_hot_columns_a_copy_and_their_sum(family):
    """Covariances of dependent columns are not positive definite: the fit fails, or goes on with negative variances."""
    hot = np.eye(6)[np.random.default_rng(0).integers(0, 6, 500)]
    model, _ = fed(np.column_stack([hot, hot[:, 0], hot.sum(1)]), family=family)
    out = model.observe([[1, 1, 0, 0, 0, 0, 1, 2.0]])
    assert out.is_anomaly[0]
    if family == "gaussian":
        assert model.observe([[1, 1, 0, 0, 0, 0, 1, 1.0]]).is_anomaly[0]


@pytest.mark.parametrize("profile", ["default", "paper"])
def test_n9b_more_features_than_a_node_has_rows(profile):
    fields = {"family": "gaussian"} if profile == "default" else {"profile": "paper", "learn_from": "all"}
    model, _ = fed(np.random.default_rng(0).normal(size=(100, 99)), **fields)
    assert np.isfinite(model.score(np.full((1, 99), 3.0))).all()


def test_n9c_a_feature_that_is_three_times_another():
    x = np.random.default_rng(0).normal(size=500)
    model, _ = fed(np.column_stack([x, 3 * x + 1e-9 * np.random.default_rng(1).normal(size=500)]))
    along, across = model.score([[1.0, 3.0], [1.0, -3.0]])
    assert across > along + 40


RNG = np.random.default_rng(3)
STREAMS = {
    "constant features": np.tile([0.0, 3.0, -1e9], (120, 1)),
    "one constant feature": np.column_stack([np.full(120, 7.0), RNG.normal(size=120)]),
    "offset 1e12, spread 1e-3": 1e12 + 1e-3 * RNG.normal(size=(120, 2)),
    "scales 1e-12 and 1e12": RNG.normal(size=(120, 2)) * [1e-12, 1e12],
    "scales 1e-150 and 1e150": RNG.normal(size=(120, 2)) * [1e-150, 1e150],
    "outliers of 1e15": np.where(RNG.random((120, 2)) < 0.02, 1e15, RNG.normal(size=(120, 2))),
    "outliers of 1e308": np.where(RNG.random((120, 2)) < 0.02, -1e308, RNG.normal(size=(120, 2))),
    "outlier first": np.vstack([[1e308, -1e308], RNG.normal(size=(120, 2))]),
    "integers": RNG.integers(0, 4, size=(120, 2)).astype(float),
    "denormals": RNG.integers(0, 9, size=(120, 2)) * 5e-324,
    "Cauchy tails": RNG.standard_cauchy(size=(120, 3)),
    "squared Cauchy": RNG.standard_cauchy(size=(120, 2)) ** 9,
    "perfectly correlated": RNG.normal(size=(120, 1)) * [1.0, -2.0, 1e6],
    "one feature": RNG.normal(size=(120, 1)),
    "256 features": RNG.normal(size=(70, 256)),
    "more features than samples": RNG.normal(size=(70, 100)),
    "duplicates by the thousand": np.repeat([[1.0, 2.0], [1.0, 2.0 + 1e-12], [5.0, -1.0]], 700, axis=0),
    "a million and a millionth": np.where(RNG.random((300, 2)) < 0.5, 1e6, 1e-6) * RNG.normal(size=(300, 2)),
    "a step of twelve orders": np.concatenate([RNG.normal(size=60), 1e12 * RNG.normal(size=60)])[:, None],
    "a ramp": np.arange(120.0)[:, None] * [1.0, 1e9],
    "outliers beside missing values": np.where(
        RNG.random((120, 2)) < 0.1, np.nan, np.where(RNG.random((120, 2)) < 0.05, 1e15, RNG.normal(size=(120, 2)))
    )[:, [0, 1, 0]]
    + [0.0, 0.0, 1.0],
    "all doubles": RNG.normal(size=(120, 2)) * 10.0 ** RNG.uniform(-300, 300, size=(120, 2)),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("family", [None, "gaussian_diagonal"])
def test_every_stream_gives_finite_answers_and_leaves_a_sound_model(name, family):
    X = STREAMS[name]
    X = X[~np.isnan(X).all(axis=1)]
    model, out = fed(X, **({"family": family} if family else {}))
    assert np.isfinite(model.score(X)).all()
    assert_farther_is_never_likelier(model, np.sign(RNG.normal(size=(4, X.shape[1]))))
    gone = model.feedback(out.records[-40:], [True] * 40)
    if name != "all doubles":  # what is left of a variance of 1e40 after its cause is retracted is rounding
        assert_sound(model)
    model.feedback(gone.records, [False] * 40)
    assert np.isfinite(model.score(X)).all()
    if name != "all doubles":
        assert_sound(model)
    assert Detector.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


PAPER_STREAMS = [
    "constant features",
    "integers",
    "denormals",
    "Cauchy tails",
    "perfectly correlated",
    "outliers of 1e15",
]


@pytest.mark.parametrize("name", [*PAPER_STREAMS, "outliers of 1e308", "squared Cauchy", "all doubles", "one feature"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_paper_profile_on_huge_and_tiny_values(name, family):
    """It neither scales nor clips: its variances reach 1e200, and must not overflow on the way to a score."""
    model = detector(STREAMS[name].shape[1], profile="paper", learn_from="all", family=family)
    out = model.observe(STREAMS[name])
    assert np.isfinite(out.score).all()
    assert sum(n["weight"] for n in model.describe()["nodes"]) == pytest.approx(1.0)
    model.feedback(out.records[::7], [True] * len(out.records[::7]))
    assert np.isfinite(model.score(STREAMS[name])).all()


def test_a_learned_outlier_does_not_blind_the_model():
    """One sample of 1e15 in unscaled sums could never be subtracted again, and everything near looked normal."""
    X = clusters(400, 2)
    calm, shaken = detector(2), detector(2)
    calm.observe(X[:200])
    shaken.observe(X[:200])
    record = shaken.observe([[1e15, -1e15]]).records
    shaken.observe(X[200:])
    shaken.feedback(record, [True])
    calm.observe(X[200:])
    assert np.abs(np.median(shaken.log_density(X)) - np.median(calm.log_density(X))) < 0.5
    assert shaken.score([[30.0, -30.0]])[0] > 20


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.9])
def test_farther_is_never_likelier_beyond_all_squares(correlation):
    """With values cut one by one, [1e308, -1e308] was likelier than [1e200, 0] along a correlation."""
    X = np.random.default_rng(4).multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], 300)
    model = Detector(DetectorConfig(n_features=2))
    model.observe(X)
    far = [[1e90, 0.0], [1e95, -1e95], [1e200, 0.0], [1e308, -1e308], [-1e308, -1e308]]
    scores = model.score(far)
    assert np.isfinite(scores).all()
    assert (np.diff(scores) >= 0).all()
    assert model.observe(far).is_anomaly[0]


def test_a_state_of_nothing_but_the_largest_doubles_comes_back():
    model = Detector(DetectorConfig(n_features=1, profile="paper"))
    for x in RNG.uniform(1e308, 1.7e308, 60):
        model.feedback(model.observe([[x]]).records, [False])
    assert Detector.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


def test_a_missing_value_beside_values_far_from_all_nodes():
    model = Detector(DetectorConfig(n_features=3, profile="paper"))
    X = np.stack([RNG.uniform(1e308, 1.7e308, 60), RNG.normal(size=60), RNG.choice([-1.7e308, 1.7e308], 60)], 1)
    for x in X:
        model.feedback(model.observe(x[None]).records, [False])
    out = model.observe([[np.nan, 1e177, 1.2e285]])
    assert np.isfinite(out.score).all()
    model.feedback(out.records, [False])
    again = Detector.from_bytes(model.to_bytes())
    assert np.isfinite(again.score([[1e308, 0.0, 1.7e308], [0.0, 0.0, 0.0]])).all()


def test_what_is_imputed_beside_a_huge_value_has_no_huge_variance():
    """Given 1e15 a Student t has a variance of 1e28: learned as it is, one sample blinded the feature for good."""
    model, plain = detector(3), detector(3)
    X = clusters(300)
    for one in (model, plain):
        one.observe(X)
    model.observe([[1e15, np.nan, 0.1]])
    for one in (model, plain):
        one.observe(clusters(40, seed=1))
    spread, usual = (one.state.density.densities.moments()[1][0, 1, 1] for one in (model, plain))
    assert spread < 1.5 * usual


@pytest.mark.parametrize("half_life", [10.0, 30.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_feature_and_its_copy_that_grow_and_shrink_by_twelve_orders(family, half_life):
    """A search among rows of 1e12 and of 1 found a variance below zero, and a matrix that has no inverse."""
    model = detector(2, family=family, half_life_samples=half_life, scaling="none", round_growth=0.3)
    rng = np.random.default_rng(0)
    for scale in [1.0, 1.0, *(10.0**k for k in range(13)), *[1.0] * 10]:
        x = rng.normal(size=(60, 1)) + np.where(rng.random((60, 1)) < 0.5, 10, 0)
        assert np.isfinite(model.observe(np.repeat(scale * x, 2, 1)).score).all()
    assert_sound(model)


def test_a_search_among_copies_beside_a_small_variance_finds_a_plane():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1)) + np.where(rng.random((60, 1)) < 0.5, 10, 0)
    plane = best_hyperplane(np.repeat(1e12 * x, 2, 1), np.eye(2), 3, lambda left: left.mean(0))
    assert plane is not None
    assert np.linalg.norm(plane.normal) == pytest.approx(1.0)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_long_stream_stays_sound_and_its_state_small(family):
    """ITAN_LONG_STREAM=1000000 for more samples: counts of 1e6, and hundreds of rounds of the greatest length."""
    n = int(os.environ.get("ITAN_LONG_STREAM", "30000"))
    rng = np.random.default_rng(6)
    model, sizes = detector(3, family=family, max_nodes=31), []
    for start in range(0, n, 10_000):
        X = clusters(min(10_000, n - start), 3, seed=start)
        X[rng.random(X.shape) < 0.01] = np.nan
        X[np.isnan(X).all(1)] = 0.5
        out = model.observe(X)
        assert np.isfinite(out.score[out.ready]).all()
        assert_sound(model)
        sizes.append(len(model.to_bytes()))
    assert model.describe()["nodes"][0]["count"] + len(model.state.density.state()["pending"]) == pytest.approx(n)
    assert sizes[-1] < 2 * sizes[0] + 100_000
