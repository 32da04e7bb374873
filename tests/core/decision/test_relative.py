"""Thresholds relative to the level of the scores."""

from math import isfinite
from sys import float_info

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.threshold.recent_scores import WINDOW
from tests.core.decision.rules import FOLLOWING, RULES, SCORES, labelled, rule_of


@pytest.mark.parametrize("name", RULES)
def test_relative_thresholds_stand_at_any_level_of_the_scores(name):
    rule, moved = rule_of(name, drift_relative=True), rule_of(name, drift_relative=True)
    for _ in range(2):
        met, other = rule.pass_by(SCORES).threshold, moved.pass_by(SCORES + 700).threshold
    assert other == pytest.approx(met + 700)
    assert moved.value == pytest.approx(rule.value + 700)


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("drift", [0.01, -0.01])
def test_relative_thresholds_follow_a_drift_that_others_flag_or_miss(name, drift):
    rising = np.tile(SCORES, 4) + drift * np.arange(4000)
    anomalous, wrong = np.tile(SCORES > 6, 4), []
    for rule in (rule_of(name, drift_relative=True, labels_trusted=True), rule_of(name, labels_trusted=True)):
        levels = rule.pass_by(rising[:1000]).level
        for seq in range(500, 1000):
            rule.label(seq, float(rising[seq]), float(levels[seq]), 1 if anomalous[seq] else -1)
        rule.follow_labels()
        wrong.append((rule.pass_by(rising[1000:]).is_anomaly != anomalous[1000:]).sum())
    assert wrong[0] < 0.8 * wrong[1]


@pytest.mark.parametrize("name", RULES)
@given(st.lists(st.integers(0, 300), max_size=5), st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_relative_thresholds_do_not_know_how_batches_were_cut(name, cuts, seed):
    scores = np.random.default_rng(seed).normal(size=300).cumsum()
    whole, cut = rule_of(name, drift_relative=True), rule_of(name, drift_relative=True)
    decided = whole.pass_by(scores)
    parts = [cut.pass_by(part) for part in np.split(scores, sorted(cuts)) if len(part)]
    for whole_column, *columns in zip(decided, *parts, strict=True):
        assert np.array_equal(np.concatenate(columns), whole_column)
    assert {k: v.tobytes() for k, v in cut.state().items()} == {k: v.tobytes() for k, v in whole.state().items()}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("largest", [float_info.max, -float_info.max])
def test_relative_thresholds_are_finite_where_scores_are_the_largest_doubles(name, largest):
    rule = rule_of(name, drift_relative=True)
    for seq, (score, label) in enumerate([(largest, 1), (-largest, 1), (0.0, -1), (largest, -1), (-largest, 1)] * 3):
        decided = rule.pass_by(np.array([score]))
        assert np.isfinite([decided.threshold, decided.severity, decided.level]).all()
        rule.label(seq, score, float(decided.level[0]), label)
        rule.follow_labels()
        assert isfinite(rule.value)
        assert all(np.isfinite(a).all() for n, a in rule.state().items() if n != "incident_time")


def test_a_level_is_the_median_of_the_scores_before():
    rule = rule_of("weighted", drift_relative=True)
    scores = np.random.default_rng(1).normal(size=WINDOW + 200).cumsum()
    levels = rule.pass_by(scores).level
    assert levels[0] == 0
    for i in (1, 2, 3, 500, WINDOW, WINDOW + 1, WINDOW + 199):
        assert levels[i] == pytest.approx(np.median(scores[max(0, i - WINDOW) : i]))
    assert not rule_of("weighted").pass_by(scores).level.any()


@pytest.mark.parametrize("name", FOLLOWING)
def test_a_late_label_counts_from_the_level_of_its_decision(name):
    at_once, late, wrong = (rule_of(name, drift_relative=True, labels_trusted=True) for _ in range(3))
    anomalous = np.arange(200) % 4 == 0
    scores = SCORES[:200] + 20 * anomalous
    for rule in (at_once, late, wrong):
        rule.pass_by(SCORES)
    levels, *_ = [rule.pass_by(scores).level for rule in (at_once, late, wrong)]
    for rule in (late, wrong):
        rule.pass_by(SCORES + 500)
    at_once.pass_by(SCORES + 500)
    for i in range(200):
        label = 1 if anomalous[i] else -1
        for rule in (at_once, late):
            rule.label(i, float(scores[i]), float(levels[i]), label)
        wrong.label(i, float(scores[i]), 500.0, label)
    for rule in (at_once, late, wrong):
        rule.follow_labels()
    assert at_once.value == late.value
    assert (late.value > SCORES + 500).mean() > 0.95
    assert late.value < 500 + np.median(SCORES) + 20
    assert (wrong.value > SCORES + 500).mean() < 0.05


@pytest.mark.parametrize("name", ["weighted", "hindsight", "fixed"])
def test_relative_scores_that_equal_the_threshold_pass(name):
    """Level and difference may add up to a last place less than the score that they come from."""
    for low, top in [(0.1, 0.3), (-0.7, 0.3), (1e9 + 0.1, 1e9 + 0.7), (-1e6 / 3, 1e-3)]:
        value = {"threshold_value": top - low} if name == "fixed" else {}
        rule = rule_of(name, drift_relative=True, labels_trusted=True, **value)
        rule.pass_by(np.full(50, low))
        for seq in range(60):
            rule.label(seq, top if seq % 2 else low, low, -1)
        rule.follow_labels()
        assert not top > rule.value


def test_relative_ogd_ignores_the_unit_of_the_features():
    G = {"threshold_range": (1e-3, 1.0), "drift_relative": True}
    rule, scaled = rule_of("ogd", **G), rule_of("ogd", log_volume=30.0, **G)
    rule.pass_by(SCORES)
    scaled.pass_by(SCORES + 30)
    for i in range(50):
        label = 1 if SCORES[i] > 4 else -1
        rule.label(i, float(SCORES[i]), 2.0, label)
        scaled.label(i, float(SCORES[i] + 30), 32.0, label)
    assert scaled.value == pytest.approx(rule.value + 30)


@pytest.mark.parametrize("name", RULES)
def test_the_first_score_does_not_count_as_one_above_its_level(name):
    """It has no level: measured from 0, one score of 5000 nats stood in the window as its tail for 1000 more."""
    far, near = rule_of(name, drift_relative=True), rule_of(name, drift_relative=True)
    far.pass_by(np.concatenate([[5000.0], 5000 + SCORES[:150]]))
    near.pass_by(np.concatenate([[0.0], SCORES[:150]]))
    assert far.value == pytest.approx(near.value + 5000)


@pytest.mark.parametrize("name", RULES)
def test_a_relative_state_comes_back(name):
    rule = rule_of(name, drift_relative=True)
    rule.pass_by(np.concatenate([SCORES, SCORES[:30]]))
    labelled(rule, SCORES[:40], 1)
    twin = rule_of(name, drift_relative=True).goes_on_from(rule)
    assert twin.value == rule.value
    assert all(map(np.array_equal, twin.pass_by(SCORES + 3), rule.pass_by(SCORES + 3)))
