"""Every rule: before labels, by labels of one kind, ties, revisions, capacity; finite always."""

from math import isfinite

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.threshold.labelled_scores import CAPACITY
from core.threshold.ordinary_scores import ENOUGH
from tests.core.decision.rules import FOLLOWING, RULES, SCORES, flags, labelled, rule_of
from tests.effort import tries


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize(("rate", "ratio", "share"), [(0.01, 1.0, 0.001), (0.1, 1.0, 0.01), (0.01, 60.0, 0.06)])
def test_before_labels_a_tenth_of_the_expected_anomalies_is_flagged(name, rate, ratio, share):
    rule = rule_of(name, expected_anomaly_rate=rate, cost_false_negative=ratio)
    flagged = [rule.pass_by(part).is_anomaly for part in np.random.default_rng(1).gamma(2.0, 1.0, (5, 2000))]
    assert 0.5 * share < np.mean(flagged[1:]) < 2 * share


@pytest.mark.parametrize("name", RULES)
def test_no_score_meets_a_threshold_that_it_moved(name):
    one, whole = rule_of(name), rule_of(name)
    met = whole.pass_by(SCORES).threshold
    for i, score in enumerate(SCORES):
        before = one.value
        assert one.pass_by(np.array([score])).threshold[0] == before == met[i]
    assert one.value == whole.value


@pytest.mark.parametrize("name", FOLLOWING)
def test_nothing_is_flagged_before_there_are_scores_enough(name):
    rule = rule_of(name)
    assert not rule.pass_by(np.full(ENOUGH, 1e300)).is_anomaly.any()
    rule = rule_of(name)
    assert not rule.pass_by(SCORES[:ENOUGH]).is_anomaly.any()
    assert rule.pass_by(np.array([1e300])).is_anomaly[0]


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("labels_trusted", [False, True])
def test_labels_of_one_kind_keep_it_finite_and_twenty_of_the_other_bring_it_back(name, labels_trusted):
    """A threshold elsewhere froze at its first value for good once all labels were of one kind."""
    rule = rule_of(name, labels_trusted=labels_trusted)
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


@pytest.mark.parametrize("name", RULES)
def test_labels_that_are_all_normal_flag_little(name):
    rule = rule_of(name)
    rule.pass_by(SCORES)
    labelled(rule, SCORES, -1)
    assert isfinite(rule.value)
    if name in FOLLOWING:
        assert flags(rule) < 0.01


@pytest.mark.parametrize("name", FOLLOWING)
def test_separable_labels_are_separated(name):
    rule = rule_of(name, labels_trusted=True)
    rule.pass_by(SCORES)
    for i in range(100):
        rule.label(2 * i, float(SCORES[i]), 0.0, -1)
        rule.label(2 * i + 1, float(30 + SCORES[i]), 0.0, 1)
    rule.follow_labels()
    assert SCORES[:100].max() <= rule.value < 30


@pytest.mark.parametrize("name", FOLLOWING)
def test_a_score_equal_to_the_threshold_passes(name):
    """Cuts that indexed ties from the other side gave 29 misses in place of 2 on a stream of duplicates."""
    rule = rule_of(name, labels_trusted=True)
    rule.pass_by(np.ones(200))
    labelled(rule, [1.0] * 50, -1)
    labelled(rule, [2.0] * 50, 1, first_seq=100)
    assert 1.0 <= rule.value < 2.0


@pytest.mark.parametrize("name", FOLLOWING)
def test_mostly_normal_ties_pass_and_mostly_anomalous_ones_do_not(name):
    for share, passes in ((10, True), (90, False)):
        rule = rule_of(name, labels_trusted=True)
        rule.pass_by(np.concatenate([np.zeros(100), np.full(100, 5.0)]))
        for seq in range(100):
            rule.label(seq, 5.0, 0.0, 1 if seq < share else -1)
        labelled(rule, np.zeros(100), -1, first_seq=1000)
        assert (rule.value >= 5.0) == passes


@pytest.mark.parametrize("name", FOLLOWING)
def test_withdrawn_labels_leave_no_vote(name):
    rule, untouched = rule_of(name), rule_of(name)
    for each in (rule, untouched):
        each.pass_by(SCORES)
    labelled(rule, SCORES[:50], 1)
    labelled(rule, SCORES[:50], 0)
    for each in (rule, untouched):  # until both are fitted anew
        each.pass_by(np.minimum(SCORES[:64], 3.0))
    assert rule.value == untouched.value
    for each in (rule, untouched):
        labelled(each, SCORES[:1], 0, first_seq=777)
    assert rule.value == untouched.value


@pytest.mark.parametrize("name", FOLLOWING)
def test_revised_labels_are_moved_and_not_added(name):
    rule, fresh = rule_of(name), rule_of(name)
    for each in (rule, fresh):
        each.pass_by(SCORES)
    labelled(rule, SCORES[:500], 1)
    labelled(rule, SCORES[:500], -1)
    labelled(fresh, SCORES[:500], -1)
    assert len(rule.threshold.labelled) == 500
    for each in (rule, fresh):  # until both are fitted anew
        each.pass_by(np.minimum(SCORES[:64], 3.0))
    assert rule.value == fresh.value


@pytest.mark.parametrize("name", FOLLOWING)
def test_only_the_last_labels_are_kept(name):
    rule = rule_of(name)
    rule.pass_by(SCORES)
    labelled(rule, SCORES, -1)
    assert rule.threshold.labelled.seqs == list(range(1000 - CAPACITY + 1, 1001))
    labelled(rule, [3.0], 1, first_seq=1000 - CAPACITY + 1)  # the oldest, revised, is the newest
    assert rule.threshold.labelled.seqs[-1] == 1000 - CAPACITY + 1
    assert len(rule.threshold.labelled) == CAPACITY


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=tries(30), deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(-1e300, 1e300) | st.sampled_from([0.0, 1.0, 1e300]), st.sampled_from([-1, 0, 1])),
        min_size=1,
        max_size=60,
    ),
    st.sampled_from([(1.0, 1.0), (1e6, 1e-6), (1e-6, 1e6)]),
)
def test_finite_for_all_scores_labels_and_costs(name, steps, costs):
    rule = rule_of(name, cost_false_negative=costs[0], cost_false_positive=costs[1])
    for seq, (score, label) in enumerate(steps):
        decided = rule.pass_by(np.array([score]))
        assert isfinite(decided.threshold[0])
        assert isfinite(decided.severity[0])
        rule.label(seq % 7, score, 0.0, label)
        rule.follow_labels()
        assert isfinite(rule.value)
    twin = rule_of(name, cost_false_negative=costs[0], cost_false_positive=costs[1]).goes_on_from(rule)
    assert twin.value == rule.value
    assert all(map(np.array_equal, twin.pass_by(SCORES[:70]), rule.pass_by(SCORES[:70])))


@pytest.mark.parametrize("name", FOLLOWING)
def test_an_early_outlier_hides_nothing(name):
    """The largest of sixty scores was the threshold, so that one of 2816 nats hid all that came after it."""
    rule = rule_of(name)
    rule.pass_by(SCORES[:60])
    before = rule.value
    rule.pass_by(np.array([2816.0]))
    assert rule.value < before + 20


def test_known_anomalies_that_look_ordinary_lower_the_threshold():
    few, none = rule_of("weighted"), rule_of("weighted")
    for rule in (few, none):
        rule.pass_by(SCORES)
    ordered = np.sort(SCORES)
    for seq in range(20):  # every fifth is anomalous, right where the other rule still passes all
        score, label = (ordered[970], 1) if seq % 5 == 0 else (ordered[25 * seq], -1)
        few.label(seq, float(score), 0.0, label)
        none.label(seq, float(min(score, ordered[500])), 0.0, -1)
    for rule in (few, none):
        rule.follow_labels()
    assert few.value < none.value


@pytest.mark.parametrize("k", [3, 10, 30])
def test_known_anomalies_far_off_move_nothing(k):
    """Ten of one incident were taken for a rate of a third, and 160 of the next 1000 samples were flagged."""
    rule = rule_of("weighted")
    rule.pass_by(np.tile(SCORES, 2))
    before = flags(rule)
    labelled(rule, 60 + SCORES[:k], 1, first_seq=2001)
    assert flags(rule) <= before + 0.002
