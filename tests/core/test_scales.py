"""Scales follow the samples: decisions are free of units, of the first minute, of cuts and of restarts."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import Detector, Records
from core.density.unscaled import ENOUGH
from tests.core.samples import detector

N, WAKE = 600, 150
OTHERS = [40.0, 20.0], [5.0, 3.0]


def third(rng: np.random.Generator, kind: str, n: int) -> np.ndarray:
    """A feature of some kind of stream."""
    row, alive = np.arange(n), rng.normal(size=n)
    return {
        "normal": lambda: 3 + alive,
        "wakes from 0": lambda: np.where(row < WAKE, 0.0, alive),
        "wakes from 7": lambda: np.where(row < WAKE, 7.0, 7 + alive),
        "wakes elsewhere": lambda: np.where(row < WAKE, -2.0, 50 + alive),
        "is silent at first": lambda: np.where(row < WAKE, np.nan, 5 + alive),
        "starts roughly": lambda: np.where(row < 64, rng.normal(5000, 1000, n), 100 + 0.5 * alive),
        "is mostly zero": lambda: np.where(rng.random(n) < 0.05, np.exp(10 + alive), 0.0),
        "moves very rarely": lambda: np.where(rng.random(n) < 0.005, 3.0, 0.0),
        "counts": lambda: rng.poisson(4.0, n).astype(float),
        "grows": lambda: np.cumsum(rng.normal(100, 10, n)),
        "changes its unit": lambda: np.where(row < 400, 1.0, 1000.0) * (3 + 0.1 * alive),
    }[kind]()


KINDS = (
    *("normal", "wakes from 0", "wakes from 7", "wakes elsewhere", "is silent at first", "starts roughly"),
    *("is mostly zero", "moves very rarely", "counts", "grows", "changes its unit"),
)
CONFIGS = {
    "default": {},
    "relative": {"drift_relative": True},
    "ogd": {"threshold": "ogd"},
    "hindsight": {"threshold": "hindsight", "family": "gaussian_diagonal"},
    "decided normal": {"learn_from": "decided_normal", "half_life_samples": 400.0},
}

CASES = [(kind, "default") for kind in KINDS]
CASES += [(kind, c) for c in CONFIGS if c != "default" for kind in ("wakes from 7", "starts roughly", "is mostly zero")]


def stream(kind: str, seed: int = 0, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """Two steady features and a third one; the rows in which the first has spikes of eight deviations."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(*OTHERS, (n, 2)), third(rng, kind, n)])
    spikes = np.sort(rng.choice(np.arange(WAKE + 60, n), 10, replace=False))
    X[spikes, 0] += 40 * rng.choice([-1, 1], 10)
    return X, spikes


def observed(X: np.ndarray, **fields):
    return detector(X.shape[1], **fields).observe(X)


@pytest.mark.parametrize(("kind", "config"), CASES)
def test_another_unit_of_a_feature_adds_its_log_to_the_scores_and_changes_no_decision(kind, config):
    """A feature that has not moved has no unit yet: there the scores are the same."""
    X, _ = stream(kind)
    told = observed(X, **CONFIGS[config])
    moved = np.maximum.accumulate(X[:, 2] != X[0, 2] if not np.isnan(X[0, 2]) else np.arange(N) > WAKE)[told.ready]
    for unit in (1e6, 1e-6):
        again = observed(X * [1.0, 1.0, unit], **CONFIGS[config])
        assert np.array_equal(again.is_anomaly, told.is_anomaly)
        assert np.array_equal(again.incident, told.incident)
        np.testing.assert_allclose(again.severity[told.ready], told.severity[told.ready], atol=1e-6)
        added = (again.score - told.score)[told.ready]
        assert np.abs(added[moved] - np.log(unit)).max() < 1e-6
        assert np.abs(added[~moved]).max(initial=0.0) < 1e-6


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kind", ["wakes from 0", "wakes from 7", "is silent at first", "wakes elsewhere"])
def test_a_feature_that_wakes_up_hides_no_spike_of_the_others(kind, unit):
    found, without = [], []
    for seed in range(3):
        X, spikes = stream(kind, seed, 1200)
        X[:, 2] *= unit
        told = observed(X)
        found.append(told.is_anomaly[spikes].mean())
        without.append(recall_of_the_others(kind, seed))
        assert told.is_anomaly[WAKE] or kind == "is silent at first"
        assert told.is_anomaly[WAKE:].sum() <= 24
    assert np.mean(found) >= max(0.85, np.mean(without) - 0.1)


@cache
def recall_of_the_others(kind: str, seed: int) -> float:
    """Which share of the spikes is found where the third feature is missing, in whatever unit it is."""
    X, spikes = stream(kind, seed, 1200)
    return float(observed(X[:, :2]).is_anomaly[spikes].mean())


def test_a_deviation_is_found_however_wild_the_first_minute_was():
    """Of twenty deviations, beside two other features, and alone."""
    found, alone = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(*OTHERS, (1300, 2)), third(rng, "starts roughly", 1300)])
        rows = rng.choice(np.arange(500, 1300), 6, replace=False)
        X[rows, 2] += 10.0 * rng.choice([-1, 1], len(rows))
        told = observed(X)
        found.append(told.is_anomaly[rows].mean())
        alone.append(observed(X[:, 2:]).is_anomaly[rows].mean())
        assert told.is_anomaly.sum() <= 6 + 24
    assert min(np.mean(alone), np.mean(found)) >= 0.9


def test_a_counter_that_is_mostly_zero_takes_little_of_the_recall():
    with_it, without = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(*OTHERS, (2000, 2)), third(rng, "is mostly zero", 2000)])
        rows = np.sort(rng.choice(np.arange(700, 2000), 12, replace=False))
        X[rows, 0] += 40 * rng.choice([-1, 1], 12)
        with_it.append(observed(X).is_anomaly[rows].mean())
        without.append(observed(X[:, :2]).is_anomaly[rows].mean())
    assert np.mean(with_it) >= np.mean(without) - 0.25


def test_steps_that_are_rarer_than_anomalies_are_always_news():
    X, _ = stream("moves very rarely", n=5000)
    told = observed(X)
    stepped = (X[:, 2] != 0) & told.ready
    assert stepped.sum() > 12
    assert told.is_anomaly[stepped].mean() > 0.9


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("normal", "counts")])
def test_cuts_restarts_and_labels_make_no_difference(kind):
    """Saved before and after every event, and with labels for samples of before it."""
    X, _ = stream(kind)
    rng = np.random.default_rng(1)
    labels = {int(at): rng.integers(0, at, 5).tolist() for at in rng.integers(70, N, 12)}
    whole = life(detector(3), X, labels, sorted(labels))
    for cuts in (sorted({*labels, *range(1, N, 3)}), sorted({*labels, *rng.integers(1, N, 60).tolist()})):
        again = life(detector(3), X, labels, cuts)
        assert again[0] == whole[0]
        assert np.array_equal(again[1], whole[1], equal_nan=True)


def life(running: Detector, X: np.ndarray, labels: dict[int, list[int]], cuts) -> tuple[bytes, np.ndarray]:
    """Observe in batches with labels in between, and restart between all of them."""
    records: list[Records] = []
    for start, stop in zip([0, *cuts], [*cuts, N], strict=True):
        if start in labels:
            for row in labels[start]:
                records[row] = running.feedback(records[row], [bool(row % 4 == 0)]).records
        out = running.observe(X[start:stop])
        records += [out.records[i] for i in range(stop - start)]
        running = Detector.from_bytes(running.to_bytes())
    told = Records.concatenate(records)
    return running.to_bytes(), np.column_stack([told.score, told.threshold, told.is_anomaly, told.severity])


@settings(max_examples=5, deadline=None)
@given(st.sampled_from(KINDS), st.integers(0, 100), st.sets(st.integers(1, 399), max_size=9))
def test_random_cuts(kind, seed, cuts):
    X, _ = stream(kind, seed, 400)
    whole, parts = detector(3), detector(3)
    whole.observe(X)
    for part in np.split(X, sorted(cuts)):
        parts.observe(part)
    assert parts.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("kind", ["wakes from 7", "is silent at first", "is mostly zero"])
def test_reading_says_what_observing_would(kind):
    X, _ = stream(kind)
    running = detector(3)
    running.observe(X[:64])
    for start in range(64, WAKE + 60, 4):
        for i in range(start, start + 4):
            read = running.score(X[i : i + 3])[0]
            assert read == pytest.approx(running.observe(X[i : i + 1]).score[0], abs=1e-9)
        assert np.isfinite(running.explain(X[start : start + 9]).expected).all()


@pytest.mark.parametrize("kind", ["wakes from 0", "starts roughly", "is mostly zero"])
def test_every_sample_can_be_taken_back(kind):
    """Also samples of before a scale was told: taken back and restored they leave the root as it was."""
    X, _ = stream(kind)
    running = detector(3)
    records = running.observe(X).records
    before = root(running)
    learned = np.flatnonzero(records.rows["status"] == 1)[::7]
    gone = running.feedback(records[learned], [True] * len(learned))
    assert gone.retracted.all()
    assert root(running)[0] < before[0]
    running.feedback(gone.records, [None] * len(learned))
    for one, other in zip(root(running), before, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6 * np.abs(other).max())


def root(running: Detector) -> tuple[np.ndarray, ...]:
    """What the root has counted."""
    statistics = running.state.density.nodes.statistics
    running.state.density.end_round()
    return statistics.count[0].copy(), statistics.mean[0].copy(), statistics.scatter[0].copy()


def test_a_fixed_threshold_stays_in_the_users_units():
    X, _ = stream("wakes from 0")
    X[:, 2] *= 1e6
    told = observed(X, threshold="fixed", threshold_value=31.0)
    assert (told.threshold[told.ready] == 31.0).all()
    assert np.array_equal(told.is_anomaly, told.ready & (told.score > 31.0))


def test_the_other_scalings_and_the_paper_follow_nothing():
    X, _ = stream("wakes from 0")
    for fields in ({"scaling": "none"}, {"profile": "paper"}, {"profile": "paper", "scaling": "auto"}):
        running = detector(3, **fields)
        running.observe(X)
        scale = np.array(running.describe()["scaling"]["scale"])
        running.observe(X * 1e3)
        assert np.array_equal(running.describe()["scaling"]["scale"], scale)


def test_what_is_shown_has_the_scale_of_now():
    X, _ = stream("starts roughly", n=1500)
    running = detector(3)
    running.observe(X)
    assert 0.2 < running.describe()["scaling"]["scale"][2] < 2.5
    told = running.explain(np.array([[40.0, 20.0, 110.0]]))
    assert told.contribution[0].argmax() == 2


EXTREMES = [5e-324, -1e-300, 1e-160, 1e-40, 1e100, -1e154, 1e200, 1.7e308, -1.7e308]


@pytest.mark.parametrize("constant", [0.0, 7.0, 1e300, -1.7e308, 5e-324, np.nan])
@pytest.mark.parametrize("first", EXTREMES)
def test_any_finite_steps_are_fit_to_be_scored(constant, first):
    rng = np.random.default_rng(0)
    n = 2 * ENOUGH + 200
    X = np.column_stack([rng.normal(size=n), np.full(n, constant)])
    X[100, 1] = first
    X[120:, 1] = np.where(rng.random(n - 120) < 0.5, rng.choice(EXTREMES, n - 120), rng.normal(size=n - 120))
    running = detector(2)
    told = running.observe(X)
    assert np.isfinite(told.score[told.ready]).all()
    assert np.isfinite(told.threshold[told.ready]).all()
    assert np.isfinite(running.score(X)).all()
    again = Detector.from_bytes(running.to_bytes())
    assert np.array_equal(again.score(X), running.score(X))


def test_a_constant_far_larger_than_what_follows_is_left_all_the_same():
    """Differences of 1 beside 2^63 are none in doubles: the feature is blind, and the others must not suffer."""
    found, without = [], []
    for seed in range(3):
        X, spikes = stream("wakes from 0", seed, 1200)
        X[:WAKE, 2] = 2.0**63
        told = observed(X)
        assert told.is_anomaly[WAKE]
        found.append(told.is_anomaly[spikes].mean())
        without.append(observed(X[:, :2]).is_anomaly[spikes].mean())
    assert np.mean(found) >= np.mean(without) - 0.4
