"""The policies: before labels, by labels of one kind, ties, revisions, capacity; finite always."""

from math import exp, isfinite, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.config import DetectorConfig
from core.threshold import CAPACITY, WINDOW, Threshold, cost_of_cuts, cuts_between, threshold_of

POLICIES = ["weighted", "hindsight", "ogd", "fixed"]
FOLLOWING = ["weighted", "hindsight"]
SCORES = np.random.default_rng(0).gamma(2.0, 1.0, 1000)


def policy(name: str, *, log_volume: float = 0.0, **fields) -> Threshold:
    if name == "fixed":
        fields["threshold_value"] = 4.0
    return threshold_of(DetectorConfig(n_features=1, threshold=name, **fields), log_volume)


def labelled(rule: Threshold, scores, label: int, *, first_seq: int = 1) -> Threshold:
    for seq, score in enumerate(scores, first_seq):
        rule.label(seq, float(score), label)
    rule.settle()
    return rule


def flags(rule: Threshold) -> float:
    return float((rule.value < SCORES).mean())


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize(("rate", "ratio"), [(0.01, 1.0), (0.1, 1.0), (0.01, 100.0)])
def test_before_labels_it_is_a_quantile_of_the_last_scores(name, rate, ratio):
    rule = policy(name, expected_anomaly_rate=rate, cost_false_negative=ratio)
    rule.pass_by(SCORES)
    assert flags(rule) == pytest.approx(rate * sqrt(ratio), abs=0.002)
    rule.pass_by(SCORES + 100)  # the window has forgotten the first
    assert rule.value == pytest.approx(np.quantile(SCORES, 1 - rate * sqrt(ratio)) + 100, abs=0.3)


@pytest.mark.parametrize("name", POLICIES)
def test_no_score_meets_a_threshold_that_it_moved(name):
    one, whole = policy(name), policy(name)
    met = whole.pass_by(SCORES)
    for i, score in enumerate(SCORES):
        before = one.value
        assert one.pass_by(np.array([score]))[0] == before == met[i]
    assert one.value == whole.value


def test_the_first_score_is_never_flagged():
    for name in FOLLOWING:
        assert not policy(name).pass_by(np.array([1e300]))[0] < 1e300


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("labels_trusted", [False, True])
def test_labels_of_one_kind_keep_it_finite_and_twenty_of_the_other_bring_it_back(name, labels_trusted):
    """A threshold elsewhere froze at its first value for good once all labels were of one kind."""
    rule = policy(name, labels_trusted=labels_trusted)
    rule.pass_by(SCORES)
    labelled(rule, SCORES, 1)
    assert isfinite(rule.value)
    all_anomalous = flags(rule)
    labelled(rule, SCORES[:20], -1, first_seq=5001)
    assert isfinite(rule.value)
    if name in FOLLOWING:
        assert all_anomalous > 0.9
    if name == "weighted" and not labels_trusted:
        assert flags(rule) < 0.25
    if name in FOLLOWING:  # trusted labels, and the plain minimiser, weigh twenty against 492
        labelled(rule, SCORES[:CAPACITY], -1, first_seq=5001)
        assert flags(rule) < 0.01


@pytest.mark.parametrize("name", POLICIES)
def test_labels_that_are_all_normal_flag_little(name):
    rule = policy(name)
    rule.pass_by(SCORES)
    labelled(rule, SCORES, -1)
    assert isfinite(rule.value)
    if name in FOLLOWING:
        assert flags(rule) < 0.01


@pytest.mark.parametrize("name", FOLLOWING)
def test_separable_labels_are_separated(name):
    rule = policy(name, labels_trusted=True)
    rule.pass_by(SCORES)
    for i in range(100):
        rule.label(2 * i, float(SCORES[i]), -1)
        rule.label(2 * i + 1, float(30 + SCORES[i]), 1)
    rule.settle()
    assert SCORES[:100].max() <= rule.value < 30


@pytest.mark.parametrize("name", FOLLOWING)
def test_a_score_equal_to_the_threshold_passes(name):
    """Cuts that indexed ties from the other side gave 29 misses in place of 2 on a stream of duplicates."""
    rule = policy(name, labels_trusted=True)
    rule.pass_by(np.ones(200))
    labelled(rule, [1.0] * 50, -1)
    labelled(rule, [2.0] * 50, 1, first_seq=100)
    assert 1.0 <= rule.value < 2.0


@pytest.mark.parametrize("name", FOLLOWING)
def test_mostly_normal_ties_pass_and_mostly_anomalous_ones_do_not(name):
    for share, passes in ((10, True), (90, False)):
        rule = policy(name, labels_trusted=True)
        rule.pass_by(np.concatenate([np.zeros(100), np.full(100, 5.0)]))
        for seq in range(100):
            rule.label(seq, 5.0, 1 if seq < share else -1)
        labelled(rule, np.zeros(100), -1, first_seq=1000)
        assert (rule.value >= 5.0) == passes


@pytest.mark.parametrize("name", FOLLOWING)
def test_withdrawn_labels_leave_no_vote(name):
    rule, untouched = policy(name), policy(name)
    for each in (rule, untouched):
        each.pass_by(SCORES)
    labelled(rule, SCORES[:50], 1)
    labelled(rule, SCORES[:50], 0)
    assert rule.value == untouched.value
    labelled(rule, SCORES[:1], 0, first_seq=777)
    assert rule.value == untouched.value


@pytest.mark.parametrize("name", FOLLOWING)
def test_revised_labels_are_moved_and_not_added(name):
    rule, fresh = policy(name), policy(name)
    for each in (rule, fresh):
        each.pass_by(SCORES)
    labelled(rule, SCORES[:500], 1)
    labelled(rule, SCORES[:500], -1)
    labelled(fresh, SCORES[:500], -1)
    assert len(rule.labelled.seq) == 500
    assert rule.value == fresh.value


@pytest.mark.parametrize("name", FOLLOWING)
def test_only_the_last_labels_are_kept(name):
    rule = policy(name)
    rule.pass_by(SCORES)
    labelled(rule, SCORES, -1)
    assert rule.labelled.seq.tolist() == list(range(1000 - CAPACITY + 1, 1001))
    labelled(rule, [3.0], 1, first_seq=1000 - CAPACITY + 1)  # the oldest, revised, is the newest
    assert rule.labelled.seq.tolist()[-1] == 1000 - CAPACITY + 1
    assert len(rule.labelled.seq) == CAPACITY
    assert len(rule.recent.ordered) == WINDOW


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(-1e300, 1e300) | st.sampled_from([0.0, 1.0, 1e300]), st.sampled_from([-1, 0, 1])),
        min_size=1,
        max_size=60,
    ),
    st.sampled_from([(1.0, 1.0), (1e6, 1e-6), (1e-6, 1e6)]),
)
def test_finite_for_all_scores_labels_and_costs(name, steps, costs):
    rule = policy(name, cost_false_negative=costs[0], cost_false_positive=costs[1])
    for seq, (score, label) in enumerate(steps):
        assert isfinite(rule.pass_by(np.array([score]))[0])
        rule.label(seq % 7, score, label)
        rule.settle()
        assert isfinite(rule.value)
    twin = policy(name, cost_false_negative=costs[0], cost_false_positive=costs[1])
    twin.load(rule.state())
    assert twin.value == rule.value
    assert np.array_equal(twin.pass_by(SCORES[:70]), rule.pass_by(SCORES[:70]))


# Alg. 3


@pytest.mark.parametrize("log_volume", [0.0, 12.5, -700.0])
def test_gradient_step_is_the_papers(log_volume):
    low, high, c_anomalous, c_normal = 0.01, 0.5, 3.0, 0.5
    rule = policy(
        "ogd",
        log_volume=log_volume,
        threshold_range=(low, high),
        cost_false_negative=c_anomalous,
        cost_false_positive=c_normal,
    )
    tau, cost, diameter = sqrt(low * high), {1: c_anomalous, -1: c_normal}, high - low
    for t, (p, d) in enumerate([(0.1, 1), (0.3, -1), (0.0001, 1), (7.0, -1)], 1):
        rule.label(t, log_volume - log(p), d)
        held = min(max(p, low), high)
        size = (1 + exp(diameter)) ** 2 / (t * min(cost.values()) * exp(diameter))
        tau = min(max(tau + size * d * cost[d] / (1 + exp((tau - held) * d)), low), high)
        assert rule.value == pytest.approx(log_volume - log(tau))


@given(st.floats(1e-300, 1e6), st.integers(1, 3))
def test_the_gradient_threshold_of_a_narrow_range_survives_a_snapshot(low, steps):
    high = low
    for _ in range(steps):
        high = float(np.nextafter(high, 1e7))
    if high > 1e6:
        return
    rule = policy("ogd", threshold_range=(low, high))
    policy("ogd", threshold_range=(low, high)).load(rule.state())


# cuts


@given(st.lists(st.floats(-1e6, 1e6) | st.integers(0, 3).map(float), min_size=1, max_size=30), st.randoms())
def test_costs_of_cuts_equal_counting(scores, random):
    score = np.sort(scores)
    step = np.array([random.choice([2.0, -1.0]) for _ in scores])
    cuts = cuts_between(score)
    counted = [step[score <= cut].sum() for cut in cuts]
    assert np.allclose(cost_of_cuts(cuts, score, step), counted)
    assert cuts[0] < score[0]
    assert cuts[-1] == score[-1]


@pytest.mark.parametrize("name", FOLLOWING)
def test_an_early_outlier_hides_nothing(name):
    """The largest of sixty scores was the threshold, so that one of 2816 nats hid all that came after it."""
    rule = policy(name)
    rule.pass_by(SCORES[:60])
    before = rule.value
    rule.pass_by(np.array([2816.0]))
    assert rule.value < before + 20
