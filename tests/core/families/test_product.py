"""Detectors over features of other kinds than gaussian: exactness, armour, and what naming the kinds is worth."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata

from core import Detector, DetectorConfig
from core.errors import InvalidConfig, InvalidObservation
from core.kinds import KINDS, LEVELS

ALL = ("gaussian", "lognormal", "gamma", "exponential", "poisson", "bernoulli", "categorical")


def detector_of(kinds: tuple[str, ...], **fields: Any) -> Detector:
    return Detector(DetectorConfig(features=[{"name": f"f{i}", "kind": k} for i, k in enumerate(kinds)], **fields))


def mixed(n: int, seed: int = 0, missing: float = 0.0) -> np.ndarray:
    """Three clusters over one feature of every kind."""
    rng = np.random.default_rng(seed)
    c = rng.integers(0, 3, n)
    X = np.column_stack(
        [
            rng.normal(size=n) + 3 * c,
            np.exp(rng.normal(size=n) * 0.3 + c),
            rng.gamma(3 + 2 * c, 1 / (1 + c)),
            rng.exponential(1 + 5 * c),
            rng.poisson(3 + 10 * c),
            rng.random(n) < 0.1 + 0.4 * (c == 1),
            np.where(rng.random(n) < 0.9, c, rng.integers(0, 6, n)),
        ]
    ).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    X[np.isnan(X).all(1), 0] = 0.0
    return X


@pytest.mark.parametrize("fields", [{}, {"family": "gaussian_diagonal"}, {"half_life_samples": 150.0}])
def test_batches_and_snapshots_do_not_show(fields):
    X = mixed(500, missing=0.05)
    whole = detector_of(ALL, **fields)
    out = whole.observe(X)
    assert len(whole.describe()["nodes"]) > 1
    parts, scores = detector_of(ALL, **fields), []
    for rows in np.split(X, [1, 2, 3, 40, 41, 200, 317]):
        scores.append(parts.observe(rows).score)
        parts = Detector.from_bytes(parts.to_bytes())
    assert np.array_equal(np.concatenate(scores), out.score, equal_nan=True)
    assert parts.to_bytes() == whole.to_bytes()
    assert np.array_equal(whole.score(X)[:9], np.concatenate([whole.score(x[None]) for x in X[:9]]))


def test_features_said_to_be_gaussian_are_the_plain_detector():
    X = mixed(300)[:, :4]
    plain, named = Detector(DetectorConfig(n_features=4)), detector_of(("gaussian",) * 4)
    assert np.array_equal(plain.observe(X).score, named.observe(X).score, equal_nan=True)


def test_a_lognormal_is_the_gaussian_of_the_logarithm():
    """But for the Jacobian: p(x) = p(log x) / x."""
    X = np.exp(np.random.default_rng(0).normal(size=(400, 2)))
    log_normal, normal = detector_of(("lognormal",) * 2), detector_of(("gaussian",) * 2)
    shown, expected = log_normal.observe(X).score, normal.observe(np.log(X)).score + np.log(X).sum(1)
    np.testing.assert_allclose(shown, expected, rtol=1e-9, equal_nan=True)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_a_retracted_sample_was_never_seen(missing):
    """Statistics of nodes and sides equal those of a run that never met the strange ones; no growth in between."""
    X, strange = mixed(300), mixed(40, seed=1, missing=missing)
    X[:150] = mixed(150, seed=2, missing=missing)  # later ones would be filled in by what the strange ones said
    strange[:, [1, 2, 3]] *= 1e6
    strange[:, 4] += 1e9
    with_them, without = detector_of(ALL, max_nodes=1), detector_of(ALL, max_nodes=1)
    with_them.observe(X[:150])
    without.observe(X[:150])
    records = with_them.observe(strange).records
    with_them.feedback(records, [True] * 40)
    with_them.observe(X[150:])
    without.observe(X[150:])
    for model in (with_them, without):
        model.state.density.end_round()
    ours, theirs = (d.state.density.state() for d in (with_them, without))
    for name in ("node_count", "node_mean", "node_scatter"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-7, atol=1e-7)


def test_retraction_and_its_undo_on_a_grown_tree():
    X = mixed(900, missing=0.05)
    model = detector_of(ALL)
    records = model.observe(X).records
    model.state.density.end_round()
    before = model.score(X)
    gone = model.feedback(records[-200:], [True] * 200)
    assert gone.retracted.all()
    assert np.abs(model.score(X) - before).max() > 1e-3
    model.feedback(gone.records, [None] * 200)
    np.testing.assert_allclose(model.score(X), before, rtol=1e-6, atol=1e-6)


def test_a_sample_with_everything_there_is_the_limit_of_a_missing_feature():
    """Mean of the score over what the missing feature may be, in one node: its expected log density."""
    kinds = ("gaussian", "poisson", "bernoulli", "categorical")
    model = detector_of(kinds, max_nodes=1)
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400), rng.poisson(4, 400), rng.random(400) < 0.3, rng.integers(0, 4, 400)])
    model.observe(X.astype(float))
    for feature, values in ((1, np.arange(400.0)), (2, np.arange(2.0)), (3, np.arange(float(LEVELS)))):
        rows = np.tile(X[7].astype(float), (len(values), 1))
        rows[:, feature] = values
        scores = model.score(rows)
        p = np.exp(-(scores - scores.min()))
        row = X[7:8].astype(float)
        row[0, feature] = np.nan
        assert model.score(row)[0] == pytest.approx((p * scores).sum() / p.sum(), rel=1e-6)


@pytest.mark.parametrize("feature", range(len(ALL)))
def test_a_row_may_have_one_known_feature(feature):
    model, X = detector_of(ALL), mixed(300)
    model.observe(X)
    rows = np.full((3, len(ALL)), np.nan)
    rows[:, feature] = X[:3, feature]
    out = model.observe(rows)
    assert np.isfinite(out.score).all()
    assert np.isfinite(model.explain(rows).contribution[:, feature]).all()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("lognormal", 0.0),
        ("gamma", -1.0),
        ("exponential", -1e-300),
        ("poisson", -1.0),
        ("poisson", 0.5),
        ("poisson", 1e15 + 1),
        ("bernoulli", 0.5),
        ("bernoulli", 2.0),
        ("categorical", float(LEVELS)),
        ("categorical", 1.5),
    ],
)
def test_a_value_that_a_kind_cannot_have_is_refused_by_name(kind, value):
    model = detector_of(("gaussian", kind), scaling="none")
    before = model.to_bytes()
    with pytest.raises(InvalidObservation) as refused:
        model.observe([[0.0, 1.0], [0.0, value]])
    assert (refused.value.row, refused.value.column, refused.value.value) == (1, 1, value)
    assert "'f1' is " + kind in str(refused.value)
    assert KINDS[kind].limit in refused.value.limit
    assert model.to_bytes() == before
    with pytest.raises(InvalidObservation):
        model.score([[0.0, value]])


@pytest.mark.parametrize(
    ("kind", "fields", "field"),
    [
        ("poisson", {"profile": "paper"}, "features[0].kind"),
        ("poisson", {"scaling": {"location": [1], "scale": [1]}}, "scaling.location[0]"),
        ("bernoulli", {"scaling": {"location": [0], "scale": [2]}}, "scaling.scale[0]"),
        ("gamma", {"scaling": {"location": [1], "scale": [2]}}, "scaling.scale[0]"),
        ("exponential", {"scaling": {"location": [1], "scale": [2]}}, "scaling.location[0]"),
    ],
)
def test_a_config_that_kinds_do_not_allow(kind, fields, field):
    with pytest.raises(InvalidConfig) as refused:
        detector_of((kind,), **fields)
    assert refused.value.field == field


RNG = np.random.default_rng(5)
STREAMS: dict[str, tuple[tuple[str, ...], Any]] = {
    "counts of nothing": (("poisson", "poisson"), np.zeros((150, 2))),
    "counts of 1e15": (("poisson",), np.where(RNG.random((150, 1)) < 0.05, 1e15, RNG.poisson(3, (150, 1)))),
    "nothing but huge counts": (("poisson",), 1e15 - RNG.integers(0, 1000, (150, 1))),
    "a first count of 1e15": (("poisson",), np.concatenate([[[1e15]], RNG.poisson(1e6, (150, 1))])),
    "equal flags": (("bernoulli", "bernoulli"), np.tile([0.0, 1.0], (150, 1))),
    "one flag": (("bernoulli",), RNG.integers(0, 2, (150, 1))),
    "equal codes": (("categorical",), np.full((150, 1), 63.0)),
    "all codes once": (("categorical",), np.arange(150.0)[:, None] % LEVELS),
    "equal durations": (("gamma", "lognormal", "exponential"), np.full((150, 3), 0.25)),
    "no time at all": (("exponential",), np.zeros((150, 1))),
    "half of the times zero": (("exponential",), np.maximum(RNG.normal(size=(150, 1)), 0)),
    "all positive doubles": (("gamma", "lognormal", "exponential"), 10.0 ** RNG.uniform(-320, 308, (150, 3))),
    "durations of 1e300": (
        ("gamma", "exponential"),
        np.where(RNG.random((150, 2)) < 0.05, 1e300, RNG.gamma(2, 1, (150, 2))),
    ),
    "denormals": (("gamma", "lognormal", "exponential"), RNG.integers(1, 9, (150, 3)) * 5e-324),
    "microseconds": (("gamma", "exponential"), 1e-6 * RNG.gamma(2, 1, (150, 2))),
    "everything": (ALL, mixed(150, missing=0.3)),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("fields", [{}, {"scaling": "none"}, {"family": "gaussian_diagonal"}])
def test_every_stream_in_the_supports_gives_finite_answers(name, fields):
    kinds, X = STREAMS[name]
    X = np.asarray(X, float)
    model = detector_of(kinds, **fields)
    out = model.observe(X)
    assert np.isfinite(out.score[out.ready]).all()
    for answer in (model.score(X), model.feedback(out.records[-60:], [True] * 60) and model.score(X)):
        assert np.isfinite(answer).all()
    assert Detector.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
    assert sum(node["weight"] for node in model.describe()["nodes"]) == pytest.approx(1.0)
    for i in range(1, len(kinds)):
        assert all(np.isfinite(part).all() for part in model.density_grid(i - 1, i, 12))


@pytest.mark.parametrize(
    ("kind", "usual", "outlier"),
    [
        ("poisson", lambda rng, n: rng.poisson(5, n), 1e15),
        ("poisson", lambda rng, n: rng.poisson(1e6, n), 1e15),
        ("gamma", lambda rng, n: rng.gamma(3, 1, n), 1e300),
        ("lognormal", lambda rng, n: rng.lognormal(0, 1, n), 1e300),
        ("exponential", lambda rng, n: rng.exponential(1, n), 1e300),
    ],
)
def test_a_learned_outlier_does_not_blind_the_model(kind, usual, outlier):
    X = np.asarray(usual(np.random.default_rng(0), 500), float)[:, None]
    calm, shaken = detector_of((kind,)), detector_of((kind,))
    calm.observe(X[:200])
    shaken.observe(X[:200])
    record = shaken.observe([[outlier]]).records
    assert record.is_anomaly.all()
    assert np.abs(np.median(shaken.score(X) - calm.score(X))) < 0.5
    shaken.observe(X[200:])
    shaken.feedback(record, [True])
    calm.observe(X[200:])
    assert np.abs(np.median(shaken.log_density(X) - calm.log_density(X))) < 0.05
    assert shaken.score([[outlier]])[0] > np.quantile(shaken.score(X), 0.999)


def test_a_density_over_two_features_is_the_model_s_own():
    kinds = ("poisson", "gamma", "categorical")
    X = mixed(600)[:, [4, 2, 6]]
    model = detector_of(kinds)
    model.observe(X)
    counts, times, log_density = model.density_grid(0, 1, 300)
    assert np.array_equal(counts, np.rint(counts))
    seen, first = np.unique(counts, return_index=True)
    inside = np.exp(log_density[:, first])
    total = np.trapezoid(inside, times, axis=0)[np.diff(seen, append=seen[-1] + 1) == 1].sum()
    assert 0.8 < total < 1.02
    row = np.array([[counts[40], times[70], code] for code in range(LEVELS)])
    assert np.exp(model.log_density(row)).sum() == pytest.approx(np.exp(log_density[70, 40]), rel=1e-6)
    codes, _, _ = model.density_grid(2, 0, 50)
    assert set(codes) <= set(range(LEVELS))


def test_describe_gives_the_parameters_of_every_factor():
    model, X = detector_of(ALL, max_nodes=1), mixed(2000)
    model.observe(X)
    gamma, exponential, poisson, flag, code = model.describe()["nodes"][0]["factors"]
    assert [f["feature"] for f in (gamma, exponential, poisson, flag, code)] == [2, 3, 4, 5, 6]
    for factor, feature in ((gamma, 2), (exponential, 3)):
        assert factor["mean"] == pytest.approx(X[:, feature].mean(), rel=0.05)
    assert poisson["rate"] == pytest.approx(X[:, 4].mean(), rel=0.02)
    assert flag["probability"] == pytest.approx(X[:, 5].mean(), rel=0.02)
    assert code["probabilities"]["0"] == pytest.approx((X[:, 6] == 0).mean(), rel=0.02)


def auc(score: np.ndarray, is_anomaly: np.ndarray) -> float:
    ranks, n = rankdata(score), int(is_anomaly.sum())
    return float((ranks[is_anomaly].sum() - n * (n + 1) / 2) / (n * (len(score) - n)))


def judged(kinds: tuple[str, ...], X: np.ndarray, is_anomaly: np.ndarray) -> tuple[float, float, Detector]:
    """Ranking AUC, and mean score of the normal rows, after row 300; labels come after each 50 rows."""
    model, scores = detector_of(kinds, learn_from="labelled_normal"), []
    for rows in np.split(np.arange(len(X)), range(50, len(X), 50)):
        out = model.observe(X[rows])
        scores.append(out.score)
        model.feedback(out.records, is_anomaly[rows].tolist())
    score = np.concatenate(scores)[300:]
    return auc(score, is_anomaly[300:]), float(score[~is_anomaly[300:]].mean()), model


def rates(rng: np.random.Generator, strange: np.ndarray) -> np.ndarray:
    """Requests, retries and errors of busy and calm hosts; a strange one makes half or nearly twice the requests."""
    n, busy = len(strange), rng.random(len(strange)) < 0.5
    requests = np.where(busy, 400, 20) * np.where(strange, rng.choice([0.5, 1.7], n), 1)
    return np.column_stack([rng.poisson(requests), rng.poisson(np.where(busy, 0.2, 2)), rng.poisson(0.05, n)])


def flipped(rng: np.random.Generator, strange: np.ndarray) -> np.ndarray:
    """A flag that is set in one cluster only, flipped where strange; beside two flags of no meaning."""
    n, second = len(strange), rng.random(len(strange)) < 0.5
    flags = [second ^ strange, rng.random(n) < 0.3, rng.random(n) < 0.05]
    return np.column_stack([rng.normal(size=n) + 5 * second, rng.normal(size=n), *flags])


def two_modes(rng: np.random.Generator, strange: np.ndarray) -> np.ndarray:
    """Durations of cached and of computed answers; a strange one is a tenfold slow cached one."""
    n, fast = len(strange), rng.random(len(strange)) < 0.7
    durations = np.where(fast, rng.gamma(20, 0.05, n), rng.gamma(3, 100, n))
    durations = np.where(strange, rng.gamma(20, 0.5, n), durations)
    return np.column_stack([durations, rng.poisson(np.where(fast, 200, 5000))])


def log_modes(rng: np.random.Generator, strange: np.ndarray) -> np.ndarray:
    """The same with lognormal durations, the strange ones between the modes, and exponential pauses."""
    n, fast = len(strange), rng.random(len(strange)) < 0.7
    durations = np.where(fast, rng.lognormal(0, 0.3, n), rng.lognormal(5, 0.4, n))
    durations = np.where(strange, rng.lognormal(2.5, 0.2, n), durations)
    return np.column_stack([durations, rng.exponential(np.where(fast, 1, 30))])


CASES = {
    "rates": (rates, ("poisson", "poisson", "poisson"), 0.88),
    "flipped flag": (flipped, ("gaussian", "gaussian", "bernoulli", "bernoulli", "bernoulli"), 0.98),
    "two modes": (two_modes, ("gamma", "poisson"), 0.98),
}


@pytest.mark.parametrize("name", CASES)
def test_the_right_kinds_find_more_than_gaussians(name):
    make, kinds, floor = CASES[name]
    ours, theirs = [], []
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        strange = rng.random(1200) < 0.04
        X = make(rng, strange).astype(float)
        ours.append(judged(kinds, X, strange)[0])
        theirs.append(judged(("gaussian",) * len(kinds), X, strange)[0])
    assert min(ours) >= floor, (ours, theirs)
    assert np.mean(ours) > np.mean(theirs), (ours, theirs)


@pytest.mark.parametrize("seed", [0, 1])
def test_lognormal_durations_of_two_modes(seed):
    """They cost less than Gaussians of raw durations; in ranking by the density of x, not log x, they are no better."""
    rng = np.random.default_rng(seed)
    strange = rng.random(1200) < 0.04
    X = log_modes(rng, strange)
    found, cost, model = judged(("lognormal", "exponential"), X, strange)
    assert len(model.describe()["nodes"]) >= 3
    assert found >= 0.84
    assert cost < judged(("gaussian", "gaussian"), X, strange)[1] - 0.1


def test_the_tree_splits_on_mixed_kinds():
    """A flag means something in one cluster only: a single product of independent features cannot tell."""
    rng = np.random.default_rng(2)
    strange = rng.random(1200) < 0.04
    X, kinds = flipped(rng, strange).astype(float), CASES["flipped flag"][1]
    found, _, model = judged(kinds, X, strange)
    assert len(model.describe()["nodes"]) >= 3
    one = detector_of(kinds, max_nodes=1)
    one.observe(X)
    assert auc(one.score(X), strange) < 0.7 < found


def test_an_impossible_combination_of_codes():
    """Each service has its own method: all of both are usual, and most pairs never happen."""
    rng = np.random.default_rng(0)
    strange = rng.random(1500) < 0.03
    partner, service = rng.permutation(6), rng.choice(6, 1500, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    other = (service + rng.integers(1, 6, 1500)) % 6
    X = np.column_stack([service, partner[np.where(strange, other, service)], rng.normal(size=(1500, 3))]).astype(float)
    found, _, model = judged(("categorical", "categorical", *("gaussian",) * 3), X, strange)
    assert found >= 0.97
    blind, _, _ = judged(("categorical", "categorical", *("gaussian",) * 3), X[:, [0, 0, 2, 3, 4]], strange)
    assert blind < 0.7
    never = X[:1].copy()
    never[0, 0] = 60
    assert model.observe(never).is_anomaly[0]
