"""Incidents: when one opens, closes, and is accepted, and what labels do to it."""

from sys import float_info

import numpy as np
import pytest

from core.decision.incidents import ACCEPTED, CLOSED, NOTHING, OPENED, OUTVOTED
from core.decision.rule import Decisions
from tests.core.decision.rules import FOLLOWING, SCORES, Rule, rule_of

CALM = SCORES[:100]
"""Scores, none of which is flagged after SCORES."""


def after_a_calm_start(name: str = "weighted", **fields) -> Rule:
    rule = rule_of(name, **fields)
    rule.pass_by(np.minimum(SCORES, 6.0))
    return rule


def decide(rule: Rule, scores, X=None, times=None) -> Decisions:
    seq = rule.n_decided + 1
    rule.n_decided += len(scores)
    X = np.arange(seq, rule.n_decided + 1.0) if X is None else np.asarray(X, float)
    times = np.full(len(scores), np.nan) if times is None else np.asarray(times, float)
    return rule.decide(seq, X[:, None], np.asarray(scores, float), times)


def label(rule: Rule, new: int, old: int = 0, *, flagged: bool = True) -> bool:
    """Label a sample of the open incident; whether labels dismiss it now."""
    rule.incidents.label(new, old, flagged=flagged)
    return rule.incident == 0


def events(decided: Decisions) -> list[tuple[int, int]]:
    """Place and code of each event."""
    return [(int(i), int(decided.event[i])) for i in np.flatnonzero(decided.event)]


def test_a_run_opens_with_its_first_flag_and_closes_after_eight_samples_without():
    rule = after_a_calm_start()
    decided = decide(rule, [1, 40, 1, 1, 40, 40, *[1] * 20])
    assert events(decided) == [(1, OPENED), (13, CLOSED)]
    assert decided.incident.tolist() == [0, *[1002] * 13, *[0] * 12]
    assert decided.is_anomaly.tolist() == [False, True, False, False, True, True, *[False] * 20]
    assert rule.incidents.n_opened == 1


@pytest.mark.parametrize("close", [1, 3, 30])
def test_how_many_samples_close_it_is_a_setting(close):
    decided = decide(after_a_calm_start(incident_close_samples=close), [40, *[1] * 40])
    assert events(decided) == [(0, OPENED), (close, CLOSED)]


def test_a_gap_in_time_closes_it_and_one_without_times_does_not():
    scores, times = [40, 40, 1, 40], [0.0, 10.0, 100.0, 101.0]
    rule = after_a_calm_start(incident_close_seconds=60.0)
    assert events(decide(rule, scores, times=times)) == [(0, OPENED), (2, CLOSED), (3, OPENED)]
    rule = after_a_calm_start(incident_close_seconds=60.0)
    decided = decide(rule, [40, 40, 40], times=[0.0, 10.0, 100.0])
    assert events(decided) == [(0, OPENED), (2, OPENED)]
    assert decided.incident.tolist() == [1001, 1001, 1003]
    assert events(decide(after_a_calm_start(incident_close_seconds=60.0), scores)) == [(0, OPENED)]
    assert events(decide(after_a_calm_start(), scores, times=times)) == [(0, OPENED)]


@pytest.mark.parametrize("name", FOLLOWING)
def test_a_change_that_lasts_is_accepted_once_and_then_normal(name):
    rule = after_a_calm_start(name)
    decided = decide(rule, 40 + SCORES[:400])
    assert events(decided)[:2] == [(0, OPENED), (31, ACCEPTED)]
    assert decided.is_anomaly[:32].all()
    assert decided.is_anomaly[32:].mean() < 0.02
    assert decided.incident[32] == 0
    assert decide(rule, [40 + SCORES.max() + 40]).is_anomaly[0]


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("n_before", [40, 100, 300, 700])
def test_a_change_is_flagged_as_often_however_young_the_stream_is(name, n_before):
    rule = rule_of(name)
    rule.pass_by(np.minimum(SCORES[:n_before], 6.0))
    decided = decide(rule, 40 + SCORES[:60])
    assert events(decided)[:2] == [(0, OPENED), (31, ACCEPTED)]
    assert decided.is_anomaly[:32].all()


@pytest.mark.parametrize(("n_before", "counts"), [(130, False), (131, True)])
def test_the_score_of_the_first_flag_counts_once_the_stream_is_old_enough(n_before, counts):
    rule = rule_of("weighted")
    rule.pass_by(np.minimum(SCORES[:n_before], 6.0))
    before = rule.ordinary.n
    assert decide(rule, [40]).ordinary.tolist() == [True]
    assert rule.ordinary.n == before + counts


@pytest.mark.parametrize("accept", [2, 5, 100])
def test_how_many_samples_are_accepted_is_a_setting(accept):
    decided = decide(after_a_calm_start(incident_accept_samples=accept), 60 + SCORES[:200])
    assert (accept - 1, ACCEPTED) in events(decided)


def test_an_outage_that_repeats_one_value_stays_flagged_ten_times_as_long():
    rule = after_a_calm_start()
    decided = decide(rule, np.full(330, 40.0), X=np.zeros(330))
    at = next(i for i, event in events(decided) if event == ACCEPTED)
    assert 300 <= at <= 320
    assert decided.is_anomaly[:at].all()


def test_a_value_that_always_stands_still_says_nothing():
    rule = rule_of("weighted")
    decide(rule, np.minimum(SCORES, 6.0), X=np.zeros(1000))
    decided = decide(rule, np.full(60, 40.0), X=np.zeros(60))
    assert (31, ACCEPTED) in events(decided)


def test_the_squares_of_an_incident_count_as_ordinary():
    decided = decide(after_a_calm_start(), np.full(30, 40.0))
    assert np.flatnonzero(decided.ordinary).tolist() == [0, 3, 8, 15, 24]
    still = decide(after_a_calm_start(), np.full(30, 40.0), X=np.zeros(30))
    assert np.flatnonzero(still.ordinary).tolist() == [0]


def test_an_incident_is_not_its_own_yardstick():
    """After ten samples the threshold was the burst's own score, and nothing milder was flagged for a thousand."""
    rule = after_a_calm_start()
    decide(rule, [*np.full(28, 60.0), *CALM])
    assert decide(rule, [25.0]).is_anomaly[0]


def test_a_normal_label_ends_a_lasting_change_and_only_what_is_beyond_it_is_flagged():
    rule = after_a_calm_start()
    decide(rule, 40 + SCORES[:10])
    assert label(rule, -1)
    decided = decide(rule, 40 + SCORES[100:400])
    assert not decided.is_anomaly[:20].any()
    assert decided.is_anomaly.mean() < 0.02
    rule = after_a_calm_start()
    decide(rule, 40 + SCORES[:10])
    assert label(rule, -1)
    assert decide(rule, [400.0]).is_anomaly[0]


def test_a_change_that_was_accepted_and_ends_leaves_the_threshold_as_it_was():
    rule = after_a_calm_start()
    before = rule.value
    decide(rule, [40, 41, 42])
    label(rule, -1)
    assert rule.value > 42
    decide(rule, CALM[:8])
    assert rule.value < before + 10


def test_one_false_alarm_that_is_dismissed_hides_nothing():
    rule = after_a_calm_start()
    before = rule.value
    decide(rule, [40])
    assert label(rule, -1)
    assert rule.value < before + 10


def test_a_confirmed_incident_is_not_accepted_until_that_label_is_gone():
    rule = after_a_calm_start()
    decide(rule, 40 + SCORES[:10])
    assert not label(rule, 1)
    decided = decide(rule, 40 + SCORES[:100])
    assert decided.is_anomaly.all()
    assert decided.event.max() == NOTHING
    assert label(rule, 0, 1) is False
    decided = decide(rule, 40 + SCORES[100:140])
    assert decided.event[0] == ACCEPTED


def test_labels_vote_and_in_any_order():
    rule = after_a_calm_start()
    decide(rule, 40 + SCORES[:20])
    assert label(rule, -1)
    assert not label(rule, 1)
    assert not any(label(rule, -1) for _ in range(OUTVOTED - 1))
    assert decide(rule, 40 + SCORES[100:200]).is_anomaly.all()
    assert label(rule, -1)
    assert not label(rule, 0, -1)
    assert label(rule, 0, 1)
    assert not decide(rule, 40 + SCORES[200:220]).is_anomaly.any()


def test_anomalous_labels_of_samples_that_were_not_flagged_count_against_it_too():
    rule = after_a_calm_start()
    decide(rule, [40, 40, 1])
    assert not label(rule, 1, flagged=False)
    assert not label(rule, -1)
    assert label(rule, 0, 1, flagged=False)


@pytest.mark.parametrize("name", FOLLOWING)
def test_the_threshold_that_is_told_is_the_one_that_comes_next(name):
    rule = after_a_calm_start(name)
    decide(rule, 40 + SCORES[:30])
    label(rule, -1)
    told, severity = rule.value, rule.severities(np.array([45.0]))[0]
    decided = decide(rule, [45.0])
    assert (decided.threshold[0], decided.severity[0]) == (told, severity)


def test_nothing_is_flagged_before_there_is_a_level():
    rule = rule_of("fixed", drift_relative=True, threshold_value=8.0)
    assert rule.value == float_info.max
    assert rule.severities(np.array([10.0])).tolist() == [0.0]
    decided = decide(rule, [10.0, 18.5])
    assert decided.is_anomaly.tolist() == [False, True]
    assert (decided.is_anomaly == (np.array([10.0, 18.5]) > decided.threshold)).all()


def test_a_normal_label_on_a_sample_that_was_not_flagged_ends_nothing():
    rule = after_a_calm_start()
    decide(rule, [40, 40, 1])
    assert not label(rule, -1, flagged=False)
    assert rule.incidents.id == 1001


@pytest.mark.parametrize("name", ["fixed", "ogd"])
def test_thresholds_that_do_not_follow_the_scores_are_not_moved_by_incidents(name):
    rule = after_a_calm_start(name)
    before = rule.value
    decide(rule, 40 + SCORES[:10])
    label(rule, -1)
    assert rule.value == before
    decided = decide(rule, 40 + SCORES[:100])
    assert decided.is_anomaly.all()
    assert [event for _, event in events(decided)] == [OPENED, ACCEPTED] * 3 + [OPENED]
    assert rule.value == before
