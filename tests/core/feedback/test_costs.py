"""Confusion counts, cost and the best fixed threshold against counting; what merging bins may lose."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.errors import InvalidSnapshot
from core.feedback import costs
from core.feedback.costs import MAX_BINS, RunningCosts, wilson
from tests.effort import tries

SCORES = st.integers(-3, 12).map(float) | st.floats(-1e300, 1e300)
MOVES = st.lists(st.tuples(st.integers(0, 19), st.sampled_from([-1, 0, 1])), max_size=120)


def counted(labelled: list[tuple[float, bool, int]], c_anomalous: float, c_normal: float) -> tuple:
    """(true alarms, false alarms, misses, true passes, cost, best fixed cost), by counting."""
    table = [
        sum(f == flagged and d == label for _, f, d in labelled)
        for label, flagged in ((1, 1), (-1, 1), (1, 0), (-1, 0))
    ]
    cuts = [-np.inf, *(s for s, _, _ in labelled)]
    best = min(
        sum(c_anomalous if d > 0 else 0.0 for s, _, d in labelled if s <= c)
        + sum(c_normal if d < 0 else 0.0 for s, _, d in labelled if s > c)
        for c in cuts
    )
    return (*table, table[2] * c_anomalous + table[1] * c_normal, best)


def figures(kept: RunningCosts) -> tuple:
    c = kept.totals()
    return c.true_alarms, c.false_alarms, c.misses, c.true_passes, c.cost, c.best_fixed_cost


@given(st.lists(st.tuples(SCORES, st.booleans()), min_size=20, max_size=20), MOVES)
def test_totals_equal_counting_after_any_revisions(samples, moves):
    kept, label = RunningCosts(3.0, 0.5), [0] * 20
    for i, new in moves:
        if new != label[i]:
            kept.relabel(*samples[i], label[i], new)
            label[i] = new
    labelled = [(s, f, d) for (s, f), d in zip(samples, label, strict=True) if d]
    assert figures(kept) == pytest.approx(counted(labelled, 3.0, 0.5))
    best = kept.totals()
    assert best.labels == len(labelled)
    if labelled:
        flagged = [(s, s > best.best_fixed_threshold, d) for s, _, d in labelled]
        assert counted(flagged, 3.0, 0.5)[4] == pytest.approx(best.best_fixed_cost)


def test_nothing_labelled_costs_nothing():
    assert figures(RunningCosts(1.0, 1.0)) == (0, 0, 0, 0, 0.0, 0.0)
    assert RunningCosts(1.0, 1.0).totals().best_fixed_threshold is None


@settings(max_examples=tries(100), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 40))
@example(722002575, 5)
@example(924010726, 5)
@example(2531944416, 5)
@example(3067457711, 5)
@example(3698589116, 3)
def test_merged_bins_keep_totals_exact_and_the_best_cost_within_one_bin(seed, bins):
    """A cut inside a bin is given up; it can spare no more than the cheaper class of the bin costs.

    A score that fell between those of a bin once got a bin of its own, and the bin's labels left by a neighbour's door.
    """
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(costs, "MAX_BINS", bins)
        samples = [(float(s), bool(rng.random() < 0.3), int(rng.choice([-1, 1]))) for s in rng.normal(size=120)]
        kept = RunningCosts(3.0, 0.5)
        for score, flagged, label in samples:
            kept.relabel(score, flagged, 0, label)
        for i in rng.permutation(120)[:60].tolist():
            score, flagged, label = samples[i]
            new = int(rng.choice([-label, 0]))
            kept.relabel(score, flagged, label, new)
            samples[i] = score, flagged, new
        state = kept.state()
        assert len(state["outcome_top"]) <= bins
        assert (state["outcome_counts"] >= 0).all()
        got, exact = figures(kept), counted([s for s in samples if s[2]], 3.0, 0.5)
        assert got[:5] == exact[:5]
        loss = (state["outcome_counts"] * np.array([0.5, 3.0])).min(axis=1).max()
        assert exact[5] - 1e-9 <= got[5] <= exact[5] + loss + 1e-9


def test_more_scores_than_bins_lose_little():
    rng = np.random.default_rng(0)
    n = 2 * MAX_BINS
    anomalous = rng.random(n) < 0.3
    scores = rng.normal(size=n) + 2 * anomalous
    kept = RunningCosts(1.0, 1.0)
    for score, label in zip(scores.tolist(), anomalous.tolist(), strict=True):
        kept.relabel(score, False, 0, 1 if label else -1)
    order = np.argsort(scores)
    exact = (~anomalous).sum() + np.concatenate([[0], np.cumsum(np.where(anomalous[order], 1, -1))]).min()
    got = kept.totals().best_fixed_cost
    assert exact <= got <= exact + 2


def test_a_state_comes_back():
    kept = RunningCosts(1.0, 2.0)
    kept.count(np.arange(60) % 3 == 0)
    for i in range(50):
        kept.relabel(float(i % 9), i % 3 == 0, 0, 1 if i % 4 == 0 else -1)
    twin = RunningCosts(1.0, 2.0)
    twin.load(kept.state())
    assert twin.totals() == kept.totals()


# rates


def labelled(
    true_alarms: int, false_alarms: int, misses: int, true_passes: int, passed: int, flagged: int
) -> RunningCosts:
    """So many labels of each sort, and so many decisions in all."""
    kept = RunningCosts(1.0, 0.5)
    kept.count(np.arange(passed + flagged) < flagged)
    cases = [(5.0, True, 1), (5.0, True, -1), (1.0, False, 1), (1.0, False, -1)]
    for case, n in zip(cases, (true_alarms, false_alarms, misses, true_passes), strict=True):
        for _ in range(n):
            kept.relabel(case[0], case[1], 0, case[2])
    return kept


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        # PropCIs and statsmodels give these
        (9, 10, 0.5958, 0.9821),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I
        (15, 148, 0.0624, 0.1605),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_intervals_of_the_literature(hits, n, low, high):
    share, got_low, got_high = wilson(hits, n)
    assert share == hits / n
    assert (got_low, got_high) == pytest.approx((low, high), abs=5e-5)


def test_precision_is_of_labelled_alarms():
    costs = labelled(9, 1, 0, 0, 1000, 50).totals()
    assert (costs.precision, costs.precision_low, costs.precision_high) == wilson(9, 10)
    assert labelled(0, 0, 5, 30, 1000, 50).totals().precision is None


def test_recall_weighs_each_kind_by_its_number():
    """Of 50 flagged 9 in 10 are anomalies, of 1000 others 1 in 100: 45 found and 10 missed."""
    costs = labelled(9, 1, 1, 99, 1000, 50).totals()
    assert costs.recall == pytest.approx(45 / 55)
    (_, p_low, p_high), (_, q_low, q_high) = wilson(9, 10), wilson(1, 100)
    assert costs.recall_low == pytest.approx(50 * p_low / (50 * p_low + 1000 * q_high))
    assert costs.recall_high == pytest.approx(50 * p_high / (50 * p_high + 1000 * q_low))
    assert costs.recall != pytest.approx(9 / 10)  # what the labels alone would say


def test_counted_in_any_batches():
    kept, flagged = RunningCosts(1.0, 1.0), np.random.default_rng(0).random(100) < 0.2
    for part in np.split(flagged, [0, 7, 50]):
        kept.count(part)
    assert kept.state()["outcome_decided"].tolist() == [(~flagged).sum(), flagged.sum()]


@pytest.mark.parametrize(
    "numbers",
    [
        (9, 1, 0, 19, 1000, 50),  # too few labels of samples that passed
        (9, 1, 1, 18, 1000, 50),
        (0, 0, 5, 95, 1000, 50),  # none of a flagged one
        (9, 1, 0, 0, 1000, 50),  # only of flagged ones
        (0, 10, 0, 100, 1000, 50),  # no anomaly at all
        (0, 0, 0, 0, 1000, 50),
        (0, 0, 0, 0, 0, 0),
    ],
)
def test_a_recall_that_cannot_be_known_is_none(numbers):
    costs = labelled(*numbers).totals()
    assert (costs.recall, costs.recall_low, costs.recall_high) == (None, None, None)


@given(*[st.integers(0, 60)] * 4, st.integers(0, 10**6), st.integers(0, 10**4))
@settings(max_examples=tries(60), deadline=None)
def test_rates_lie_within_their_intervals(ta, fa, m, tp, more_passed, more_flagged):
    costs = labelled(ta, fa, m, tp, m + tp + more_passed, ta + fa + more_flagged).totals()
    for name in ("precision", "recall"):
        share, low, high = (getattr(costs, f"{name}{end}") for end in ("", "_low", "_high"))
        if share is not None:
            assert 0 <= low <= share <= high <= 1
            assert low < high
    assert costs.regret == costs.cost - costs.best_fixed_cost


def coverage(prefer: float) -> tuple[float, float]:
    """How often the intervals of precision and recall hold the truth; missed anomalies are labelled so much oftener."""
    rng, precision, recall = np.random.default_rng(0), 0.7, 0.63 / (0.63 + 0.2)
    held = np.zeros(2)
    for _ in range(100):
        flagged = np.arange(10_000) < 900
        anomalous = rng.random(10_000) < np.where(flagged, precision, 900 * 0.2 / 0.63 * precision / 9100)
        told = rng.random(10_000) < np.where(flagged, 0.2, np.where(anomalous, prefer, 1) * 0.1)
        kept = RunningCosts(1.0, 1.0)
        kept.count(flagged)
        for f, a in zip(flagged[told].tolist(), anomalous[told].tolist(), strict=True):
            kept.relabel(float(f), f, 0, 1 if a else -1)
        c = kept.totals()
        held += c.precision_low <= precision <= c.precision_high, c.recall_low <= recall <= c.recall_high
    return tuple(held / 100)


def test_intervals_hold_the_truth_if_labels_do_not_look_at_it():
    precision, recall = coverage(prefer=1.0)
    assert precision >= 0.92
    assert recall >= 0.95
    assert coverage(prefer=3.0)[1] < 0.5  # the assumption matters


def test_regret_is_what_a_fixed_threshold_would_have_spared():
    kept = RunningCosts(1.0, 0.5)
    for score, flagged, label in [(1.0, True, -1), (2.0, True, -1), (9.0, False, 1), (8.0, True, 1)]:
        kept.relabel(score, flagged, 0, label)
    assert (kept.totals().cost, kept.totals().best_fixed_cost, kept.totals().regret) == (2.0, 0.0, 2.0)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("outcome_low", lambda a: a[::-1]),
        ("outcome_low", lambda a: a + 100),
        ("outcome_low", lambda a: a - 100),
        ("outcome_top", lambda a: a[::-1]),
        ("outcome_top", lambda a: a[:-1]),
        ("outcome_top", lambda a: a * np.nan),
        ("outcome_counts", lambda a: a - 1),
        ("outcome_counts", lambda a: a + 1),
        ("outcome_confusion", lambda a: a[::-1, ::-1]),
        ("outcome_confusion", lambda a: a - 2**40),
        ("outcome_decided", lambda a: -a),
        ("outcome_decided", lambda a: a * 0),
        ("outcome_decided", lambda a: a[:1]),
        ("outcome_decided", lambda a: a.astype(float)),
    ],
)
def test_a_state_that_no_detector_writes_is_refused(name, change):
    state = labelled(4, 3, 2, 10, 20, 9).state()
    RunningCosts(1.0, 0.5).check(state)
    with pytest.raises(InvalidSnapshot):
        RunningCosts(1.0, 0.5).check(state | {name: change(state[name])})
