"""The policies: before labels, by labels of one kind, ties, revisions, capacity; finite always."""

from math import exp, isfinite, log, sqrt
from sys import float_info

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.config import DetectorConfig
from core.errors import InvalidSnapshot
from core.sizes import check_sizes
from core.threshold import windows as core_scores
from core.threshold.rules import Threshold, cost_of_cuts, cuts_between, next_fit, threshold_of
from core.threshold.windows import CAPACITY, HALF_LIFE_LABELS, WINDOW, LabelledScores

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
    for each in (rule, untouched):  # up to where both are fitted anew
        each.pass_by(SCORES[: next_fit(len(SCORES)) - len(SCORES)])
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
    assert len(rule.labelled) == 500
    assert rule.value == fresh.value


@pytest.mark.parametrize("name", FOLLOWING)
def test_only_the_last_labels_are_kept(name):
    rule = policy(name)
    rule.pass_by(SCORES)
    labelled(rule, SCORES, -1)
    assert rule.labelled.seqs == list(range(1000 - CAPACITY + 1, 1001))
    labelled(rule, [3.0], 1, first_seq=1000 - CAPACITY + 1)  # the oldest, revised, is the newest
    assert rule.labelled.seqs[-1] == 1000 - CAPACITY + 1
    assert len(rule.labelled) == CAPACITY
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
    policy("ogd", threshold_range=(low, high)).check(rule.state())


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


def test_proven_anomalies_lower_the_threshold_before_many_labels():
    """With a rate of 0.01 expected and one of 0.2 true, a dozen labels left nearly all anomalies to pass."""
    few, none = policy("weighted", cost_false_positive=0.05), policy("weighted", cost_false_positive=0.05)
    for rule in (few, none):
        rule.pass_by(SCORES)
    ordered = np.sort(SCORES)
    for seq in range(20):  # every fifth is anomalous, right where the other policy still passes all
        few.label(seq, float(ordered[970 if seq % 5 == 0 else 25 * seq]), 1 if seq % 5 == 0 else -1)
        none.label(10_000 * seq, float(ordered[970 if seq % 5 == 0 else 25 * seq]), 1 if seq % 5 == 0 else -1)
    for rule in (few, none):
        rule.settle()
    assert few.value < none.value


# drift_relative


@pytest.mark.parametrize("name", POLICIES)
def test_relative_thresholds_stand_at_any_level_of_the_scores(name):
    rule, moved = policy(name, drift_relative=True), policy(name, drift_relative=True)
    for _ in range(2):
        met, other = rule.pass_by(SCORES), moved.pass_by(SCORES + 700)
    assert other == pytest.approx(met + 700)
    assert moved.value == pytest.approx(rule.value + 700)


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("drift", [0.01, -0.01])
def test_relative_thresholds_follow_a_drift_that_others_flag_or_miss(name, drift):
    rising = np.tile(SCORES, 4) + drift * np.arange(4000)
    anomalous, wrong = np.tile(SCORES > 6, 4), []
    for rule in (policy(name, drift_relative=True, labels_trusted=True), policy(name, labels_trusted=True)):
        levels = rule.levels(rising[:1000])
        rule.pass_by(rising[:1000])
        for seq in range(500, 1000):
            rule.label(seq, float(rising[seq]), 1 if anomalous[seq] else -1, float(levels[seq]))
        met = rule.pass_by(rising[1000:])
        wrong.append(((rising[1000:] > met) != anomalous[1000:]).sum())
    assert wrong[0] < 0.75 * wrong[1]


@pytest.mark.parametrize("name", POLICIES)
@given(st.lists(st.integers(0, 300), max_size=5), st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_relative_thresholds_do_not_know_how_batches_were_cut(name, cuts, seed):
    scores = np.random.default_rng(seed).normal(size=300).cumsum()
    whole, cut = policy(name, drift_relative=True), policy(name, drift_relative=True)
    levels = whole.levels(scores)
    met = whole.pass_by(scores)
    parts, part_levels = [], []
    for part in np.split(scores, sorted(cuts)):
        part_levels.append(cut.levels(part))
        parts.append(cut.pass_by(part))
    assert np.array_equal(np.concatenate(parts), met)
    assert np.array_equal(np.concatenate(part_levels), levels)
    assert {k: v.tobytes() for k, v in cut.state().items()} == {k: v.tobytes() for k, v in whole.state().items()}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("largest", [float_info.max, -float_info.max])
def test_relative_thresholds_are_finite_where_scores_are_the_largest_doubles(name, largest):
    rule = policy(name, drift_relative=True)
    for seq, (score, label) in enumerate([(largest, 1), (-largest, 1), (0.0, -1), (largest, -1), (-largest, 1)] * 3):
        level = float(rule.levels(np.array([score]))[0])
        assert np.isfinite(rule.pass_by(np.array([score]))).all()
        rule.label(seq, score, label, level)
        rule.settle()
        assert isfinite(rule.value)
        assert all(np.isfinite(array).all() for array in rule.state().values())


def test_a_level_is_the_median_of_the_scores_before():
    rule = policy("weighted", drift_relative=True)
    scores = np.random.default_rng(1).normal(size=WINDOW + 200).cumsum()
    levels = rule.levels(scores)
    assert levels[0] == 0
    for i in (1, 2, 3, 500, WINDOW, WINDOW + 1, WINDOW + 199):
        assert levels[i] == pytest.approx(np.median(scores[max(0, i - WINDOW) : i]))
    before = {k: v.tobytes() for k, v in rule.state().items()}
    assert np.array_equal(rule.levels(scores), levels)
    assert {k: v.tobytes() for k, v in rule.state().items()} == before
    assert not policy("weighted").levels(scores).any()


@pytest.mark.parametrize("name", FOLLOWING)
def test_a_late_label_counts_from_the_level_of_its_decision(name):
    at_once, late, wrong = (policy(name, drift_relative=True, labels_trusted=True) for _ in range(3))
    anomalous = np.arange(200) % 4 == 0
    scores = SCORES[:200] + 20 * anomalous
    for rule in (at_once, late, wrong):
        rule.pass_by(SCORES)
    levels = at_once.levels(scores)
    for rule in (at_once, late, wrong):
        rule.pass_by(scores)
    for rule in (late, wrong):
        rule.pass_by(SCORES + 500)
    at_once.pass_by(SCORES + 500)
    for i in range(200):
        label = 1 if anomalous[i] else -1
        for rule in (at_once, late):
            rule.label(i, float(scores[i]), label, float(levels[i]))
        wrong.label(i, float(scores[i]), label, 500.0)
    for rule in (at_once, late, wrong):
        rule.settle()
    assert at_once.value == late.value
    assert (late.value > SCORES + 500).mean() > 0.95
    assert late.value < 500 + np.median(SCORES) + 20
    assert (wrong.value > SCORES + 500).mean() < 0.05


@pytest.mark.parametrize("name", ["weighted", "hindsight", "fixed"])
def test_relative_scores_that_equal_the_threshold_pass(name):
    """Level and difference may add up to a last place less than the score that they come from."""
    for low, top in [(0.1, 0.3), (-0.7, 0.3), (1e9 + 0.1, 1e9 + 0.7), (-1e6 / 3, 1e-3)]:
        config = DetectorConfig(
            n_features=1,
            threshold=name,
            drift_relative=True,
            labels_trusted=True,
            threshold_value=top - low if name == "fixed" else None,
        )
        rule = threshold_of(config, 0.0)
        rule.pass_by(np.full(50, low))
        for seq in range(60):
            rule.label(seq, top if seq % 2 else low, -1, low)
        rule.settle()
        assert not top > rule.value


def test_relative_ogd_ignores_the_unit_of_the_features():
    G = {"threshold_range": (1e-3, 1.0), "drift_relative": True}
    rule, scaled = policy("ogd", **G), policy("ogd", log_volume=30.0, **G)
    rule.pass_by(SCORES)
    scaled.pass_by(SCORES + 30)
    for i in range(50):
        label = 1 if SCORES[i] > 4 else -1
        rule.label(i, float(SCORES[i]), label, 2.0)
        scaled.label(i, float(SCORES[i] + 30), label, 32.0)
    assert scaled.value == pytest.approx(rule.value + 30)


@pytest.mark.parametrize("name", POLICIES)
def test_the_first_score_does_not_count_as_one_above_its_level(name):
    """It has no level: measured from 0, one score of 5000 nats stood in the window as its tail for 1000 more."""
    far, near = policy(name, drift_relative=True), policy(name, drift_relative=True)
    far.pass_by(np.concatenate([[5000.0], 5000 + SCORES[:150]]))
    near.pass_by(np.concatenate([[0.0], SCORES[:150]]))
    assert far.value == pytest.approx(near.value + 5000)


# what is kept, and its state


MOVES = st.lists(
    st.tuples(st.integers(1, 12), st.integers(0, 3).map(float) | st.floats(-5, 5), st.sampled_from([-1, 0, 1])),
    max_size=60,
)


@given(MOVES, st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_labelled_scores_equal_a_plain_list(moves, capacity):
    kept, plain, n_labels = LabelledScores(), [], 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core_scores, "CAPACITY", capacity)
        for seq, score, label in moves:
            kept.put(seq, score, label)
            plain = [row for row in plain if row[0] != seq]
            if label:
                plain = [*plain, (seq, score, label, n_labels)][-capacity:]
                n_labels += 1
    assert kept.seqs == [seq for seq, *_ in plain]
    ordered = sorted(plain, key=lambda row: row[1])
    score, step = kept.steps(3.0, 0.5)
    assert score.tolist() == [row[1] for row in ordered]
    age = [0.5 ** ((n_labels - 1 - clock) / HALF_LIFE_LABELS) for *_, clock in ordered]
    assert step == pytest.approx([a * (3.0 if row[2] > 0 else -0.5) for a, row in zip(age, ordered, strict=True)])


STATES = [
    ("threshold_recent", lambda a: a[:-1]),
    ("threshold_recent", lambda a: np.append(a, 1.0)),
    ("threshold_recent", lambda a: np.where(a == a[3], np.nan, a)),
    ("threshold_progress", lambda a: a - [1, 0, 0]),
    ("threshold_progress", lambda a: a * [1, 0, 1] + [0, WINDOW, 0]),
    ("threshold_progress", lambda a: a * [1, 1, 0]),
    ("threshold_labels", lambda a: np.concatenate([a[:, :1], a[:, :-1]], 1)),
    ("threshold_labels", lambda a: a[:, ::-1]),
    ("threshold_labels", lambda a: a * [[1], [0], [1]]),
    ("threshold_scores", lambda a: a[:-1]),
    ("threshold_scores", lambda a: a * np.inf),
    ("level_recent", lambda a: np.append(a, 1.0)),
    ("level_recent", lambda a: a * np.nan),
    ("level_oldest", lambda a: a + WINDOW),
    ("level_oldest", lambda a: a - 1000),
]


@pytest.mark.parametrize(("name", "change"), STATES)
def test_a_state_that_no_rule_writes_is_refused(name, change):
    rule = policy("weighted", drift_relative=True)
    labelled(rule, SCORES[:40], -1)
    rule.pass_by(np.concatenate([SCORES, SCORES[:30]]))
    state = rule.state()
    checked(state)
    with pytest.raises(InvalidSnapshot):
        checked(state | {name: change(state[name])})


def checked(state: dict[str, np.ndarray]) -> None:
    check_sizes(state)
    policy("weighted", drift_relative=True).check(state)


@pytest.mark.parametrize("name", POLICIES)
def test_a_relative_state_comes_back(name):
    rule, twin = policy(name, drift_relative=True), policy(name, drift_relative=True)
    rule.pass_by(np.concatenate([SCORES, SCORES[:30]]))
    labelled(rule, SCORES[:40], 1)
    twin.load(rule.state())
    assert twin.value == rule.value
    assert np.array_equal(twin.pass_by(SCORES + 3), rule.pass_by(SCORES + 3))
