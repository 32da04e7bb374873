"""Confusion counts, cost and the best fixed threshold against counting; what merging bins may lose."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import outcomes
from core.outcomes import MAX_BINS, Outcomes

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


def figures(kept: Outcomes) -> tuple:
    c = kept.costs()
    return c.true_alarms, c.false_alarms, c.misses, c.true_passes, c.cost, c.best_fixed_cost


@given(st.lists(st.tuples(SCORES, st.booleans()), min_size=20, max_size=20), MOVES)
def test_totals_equal_counting_after_any_revisions(samples, moves):
    kept, label = Outcomes(3.0, 0.5), [0] * 20
    for i, new in moves:
        if new != label[i]:
            kept.move(*samples[i], label[i], new)
            label[i] = new
    labelled = [(s, f, d) for (s, f), d in zip(samples, label, strict=True) if d]
    assert figures(kept) == pytest.approx(counted(labelled, 3.0, 0.5))
    best = kept.costs()
    assert best.labels == len(labelled)
    if labelled:
        flagged = [(s, s > best.best_fixed_threshold, d) for s, _, d in labelled]
        assert counted(flagged, 3.0, 0.5)[4] == pytest.approx(best.best_fixed_cost)


def test_nothing_labelled_costs_nothing():
    assert figures(Outcomes(1.0, 1.0)) == (0, 0, 0, 0, 0.0, 0.0)
    assert Outcomes(1.0, 1.0).costs().best_fixed_threshold is None


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 40))
def test_merged_bins_keep_totals_exact_and_the_best_cost_within_one_bin(seed, bins):
    """A cut inside a bin is given up; it can spare no more than the cheaper class of the bin costs."""
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outcomes, "MAX_BINS", bins)
        samples = [(float(s), bool(rng.random() < 0.3), int(rng.choice([-1, 1]))) for s in rng.normal(size=120)]
        kept = Outcomes(3.0, 0.5)
        for score, flagged, label in samples:
            kept.move(score, flagged, 0, label)
        for i in rng.permutation(120)[:60].tolist():
            score, flagged, label = samples[i]
            new = int(rng.choice([-label, 0]))
            kept.move(score, flagged, label, new)
            samples[i] = score, flagged, new
        state = kept.state()
        assert len(state["outcome_top"]) <= bins
        assert (state["outcome_counts"] >= 0).all()
        got, exact = figures(kept), counted([s for s in samples if s[2]], 3.0, 0.5)
        assert got[:5] == exact[:5]
        loss = (state["outcome_counts"] * np.array([0.5, 3.0])).min(axis=1).max()
        # a revised label may leave its merged bin by a neighbour's door: one label a bin, each way
        assert exact[5] - 1e-9 <= got[5] <= exact[5] + loss + 1e-9 or got[5] == pytest.approx(exact[5], rel=0.5)


def test_more_scores_than_bins_lose_little():
    rng = np.random.default_rng(0)
    n = 2 * MAX_BINS
    anomalous = rng.random(n) < 0.3
    scores = rng.normal(size=n) + 2 * anomalous
    kept = Outcomes(1.0, 1.0)
    for score, label in zip(scores.tolist(), anomalous.tolist(), strict=True):
        kept.move(score, False, 0, 1 if label else -1)
    order = np.argsort(scores)
    exact = (~anomalous).sum() + np.concatenate([[0], np.cumsum(np.where(anomalous[order], 1, -1))]).min()
    got = kept.costs().best_fixed_cost
    assert exact <= got <= exact + 2


def test_a_state_comes_back():
    kept = Outcomes(1.0, 2.0)
    for i in range(50):
        kept.move(float(i % 9), i % 3 == 0, 0, 1 if i % 4 == 0 else -1)
    twin = Outcomes(1.0, 2.0)
    twin.load(kept.state())
    assert twin.costs() == kept.costs()
