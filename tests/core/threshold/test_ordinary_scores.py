"""The tail of ordinary scores: calibrated, unmoved by a few anomalies, quiet where nothing moves."""

from math import isfinite
from sys import float_info

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.threshold.ordinary_scores import CAPACITY, ENOUGH, OrdinaryScores, kept_of
from core.threshold.sample_scores import SampleScores
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
    for seq, value in enumerate(values.tolist(), 1):
        scores.add(seq, value)
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
    for seq in range(1001, 1010):
        scores.add(seq, 10.0)
    assert scores.severity(10.0) < before - 0.9


@pytest.mark.parametrize("creep", [0.0, 1e-5, -1e-5])
def test_scores_that_are_all_the_same_or_creep_are_not_flagged(creep):
    """A flat stream flagged its own value, some thousandths of a nat above the quantile of its neighbours."""
    values = -3.3 + creep * np.arange(5000)
    scores = scores_of(values[:3000])
    for seq, value in enumerate(values[3000:].tolist(), 3001):
        assert value <= scores.threshold(0.001)
        scores.add(seq, value)
    assert scores.threshold(0.001) < -1


def test_there_is_no_threshold_before_there_are_scores_enough():
    scores = scores_of(np.zeros(ENOUGH - 1))
    assert scores.threshold(0.01) == float_info.max
    scores.add(ENOUGH, 0.0)
    assert scores.threshold(0.01) < 2


def test_the_first_scores_go_soon_and_a_new_start_forgets_all():
    scores = scores_of(np.concatenate([np.full(64, 500.0), np.zeros(200)]))
    assert scores.severity(100.0) > 50
    scores = OrdinaryScores.of(SampleScores.of(np.full(ENOUGH, 500.0)))
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
    one.label(len(values), anomalous=True)
    one.check(one.state(), len(values) + 1)
    two.load(one.state())
    for seq, value in enumerate((1.0, -2.0, 7.0), len(values) + 1):
        assert one.add(seq, value) == two.add(seq, value)
        assert (one.threshold(0.01), one.severity(2.0)) == (two.threshold(0.01), two.severity(2.0))


def test_a_labelled_anomaly_no_longer_hides_its_like_and_a_withdrawn_label_leaves_no_trace():
    values = np.append(KINDS["normal"][0][:31], 90.0)
    scores, without = scores_of(values), scores_of(values[:31])
    hidden, as_before = scores.threshold(0.001), scores.state()
    assert hidden > 90
    scores.label(32, anomalous=True)
    assert scores.threshold(0.001) < 15
    assert scores.threshold(0.001) == without.threshold(0.001)
    scores.label(32, anomalous=False)
    assert all(np.array_equal(array, as_before[name]) for name, array in scores.state().items())
    assert scores.threshold(0.001) == hidden


def test_a_label_of_a_score_that_is_gone_changes_nothing():
    scores = scores_of(KINDS["normal"][0][:100])
    before = scores.state()
    for seq in (1, 30, 101):
        scores.label(seq, anomalous=True)
    assert all(np.array_equal(array, before[name]) for name, array in scores.state().items())


def test_what_is_set_aside_goes_when_its_time_has_come():
    values = KINDS["gamma"][0][:500]
    one, two = scores_of(values[:100]), scores_of(values[:100])
    one.label(90, anomalous=True)
    for seq, value in enumerate(values[100:].tolist(), 101):
        one.add(seq, value)
        two.add(seq, value)
    assert all(np.array_equal(array, two.state()[name]) for name, array in one.state().items())
    assert one.chances(values).tolist() == two.chances(values).tolist()


def test_labels_leave_enough_scores_or_all_of_them():
    values = KINDS["normal"][0][: 2 * ENOUGH]
    scores = scores_of(values)
    for seq in range(1, ENOUGH + 1):
        scores.label(seq, anomalous=True)
    assert scores.quantile(0.5) == np.median(values[ENOUGH:])
    scores.label(ENOUGH + 1, anomalous=True)
    assert scores.quantile(0.5) == np.median(values)
    scores.add(2 * ENOUGH + 1, 7.0)
    assert scores.quantile(0.5) == np.median([*values[ENOUGH + 1 :], 7.0])
