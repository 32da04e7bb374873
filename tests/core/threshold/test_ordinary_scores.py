"""The tail of ordinary scores: calibrated, unmoved by a few anomalies, quiet where nothing moves."""

from math import isfinite
from sys import float_info

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.threshold.ordinary_scores import CAPACITY, ENOUGH, OrdinaryScores, kept_of
from tests.effort import tries

RNG = np.random.default_rng(3)
KINDS = {
    "normal": RNG.normal(size=(2, 20_000)),
    "exponential": RNG.exponential(size=(2, 20_000)),
    "lognormal": np.exp(0.5 * RNG.normal(size=(2, 20_000))),
    "gamma": RNG.gamma(2.0, 1.0, (2, 20_000)),
}


def scores_of(values: np.ndarray) -> OrdinaryScores:
    scores = OrdinaryScores()
    for value in values.tolist():
        scores.add(value)
    return scores


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chance", [0.3, 0.05, 0.01, 0.001])
def test_a_chance_is_about_the_share_that_is_flagged(kind, chance):
    """A lighter tail than exponential is flagged more rarely, and a heavier one hardly more often."""
    known, new = KINDS[kind]
    share = np.mean([(part > scores_of(past).threshold(chance)).mean() for past, part in zip_parts(known, new)])
    assert 0.05 * chance < share < 2 * chance


def zip_parts(known: np.ndarray, new: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(zip(known.reshape(5, -1), new.reshape(5, -1), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_a_severity_of_two_is_about_one_in_a_hundred(kind):
    known, new = KINDS[kind]
    share = np.mean([np.mean([scores.severity(s) >= 2 for s in part]) for scores, part in severities(known, new)])
    assert 0.004 < share < 0.014


def severities(known: np.ndarray, new: np.ndarray) -> list[tuple[OrdinaryScores, list[float]]]:
    return [(scores_of(past), part[:1000].tolist()) for past, part in zip_parts(known, new)]


def test_one_anomaly_in_a_hundred_hides_none():
    values = np.where(np.arange(2000) % 100 == 0, 60.0, KINDS["gamma"][0][:2000])
    assert scores_of(values).threshold(0.001) < 40


def test_what_comes_often_is_no_longer_severe():
    scores = scores_of(np.minimum(KINDS["normal"][0][:1000], 3.0))
    before = scores.severity(10.0)
    for _ in range(9):
        scores.add(10.0)
    assert scores.severity(10.0) < before - 0.9


@pytest.mark.parametrize("creep", [0.0, 1e-5, -1e-5])
def test_scores_that_are_all_the_same_or_creep_are_not_flagged(creep):
    """A flat stream flagged its own value, some thousandths of a nat above the quantile of its neighbours."""
    values = -3.3 + creep * np.arange(5000)
    scores = scores_of(values[:3000])
    for value in values[3000:].tolist():
        assert value <= scores.threshold(0.001)
        scores.add(value)
    assert scores.threshold(0.001) < -1


def test_there_is_no_threshold_before_there_are_scores_enough():
    scores = scores_of(np.zeros(ENOUGH - 1))
    assert scores.threshold(0.01) == float_info.max
    scores.add(0.0)
    assert scores.threshold(0.01) < 2


def test_the_first_scores_go_soon_and_a_new_start_forgets_all():
    scores = scores_of(np.concatenate([np.full(64, 500.0), np.zeros(200)]))
    assert scores.severity(100.0) > 50
    scores = OrdinaryScores.of(np.full(ENOUGH, 500.0))
    assert scores.enough
    assert scores.severity(500.0) <= 1
    assert [kept_of(n) for n in (10, 1000, 10**6)] == [10, 520, CAPACITY]


@given(st.lists(st.floats(-float_info.max, float_info.max) | st.integers(0, 3).map(float), min_size=1, max_size=80))
@settings(max_examples=tries(60), deadline=None)
def test_all_is_finite_and_in_order_for_all_scores(values):
    scores = scores_of(np.array(values))
    at = np.sort(np.array([*values, -float_info.max, float_info.max]))
    severity = [scores.severity(value) for value in at.tolist()]
    assert all(map(isfinite, severity))
    assert min(severity) >= 0
    assert (np.diff(severity) >= -1e-9).all()
    chances = scores.chances(at)
    assert ((chances >= 0) & (chances <= 1)).all()
    assert np.allclose(chances[chances > 1e-200], 10.0 ** -np.array(severity)[chances > 1e-200])
    thresholds = [scores.threshold(chance) for chance in (0.5, 0.2, 0.1, 0.05, 0.01, 1e-3, 1e-6)]
    assert all(map(isfinite, thresholds))
    assert thresholds == sorted(thresholds)


@given(st.lists(st.floats(-1e6, 1e6) | st.integers(0, 3).map(float), min_size=1, max_size=120))
@settings(max_examples=tries(60), deadline=None)
def test_a_state_goes_on_alike(values):
    one, two = scores_of(np.array(values)), OrdinaryScores()
    one.check(one.state())
    two.load(one.state())
    for value in (1.0, -2.0, 7.0):
        assert one.add(value) == two.add(value)
        assert (one.threshold(0.01), one.severity(2.0)) == (two.threshold(0.01), two.severity(2.0))
