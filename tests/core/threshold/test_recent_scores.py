"""The recent scores, against plain lists."""

from sys import float_info

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InvalidSnapshot
from core.threshold import recent_scores
from core.threshold.recent_scores import EARLY, FENCE, WINDOW, RecentScores, check_ring

SCORES = st.lists(st.floats(-1e6, 1e6) | st.integers(0, 3).map(float), max_size=40)


def scores_of(values: np.ndarray) -> RecentScores:
    recent = RecentScores()
    for value in values.tolist():
        recent.add(value)
    return recent


@given(SCORES, st.integers(1, 12))
@settings(deadline=None)
def test_medians_and_ranks_are_those_of_the_scores_before(values, window):
    scores = np.array(values, float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recent_scores, "WINDOW", window)
        levels, ranks = RecentScores().levels(scores), RecentScores().ranks(scores)
    for i in range(len(values)):
        before = values[max(0, i - window) : i]
        assert levels[i] == pytest.approx(np.median(before) if before else 0.0)
        assert ranks[i] == (sum(other < values[i] for other in before) / len(before) if before else 0.0)


@given(SCORES, st.integers(1, 12))
@settings(deadline=None)
def test_a_copy_and_a_loaded_ring_go_on_alike_and_apart(values, window):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recent_scores, "WINDOW", window)
        one = scores_of(np.array(values, float))
        ring, oldest = np.array(one.ring, float), one.oldest
        check_ring(ring, oldest)
        loaded, copied = RecentScores(), one.copy()
        loaded.load(ring, oldest)
        for each in (one, loaded):
            each.add(2.5)
        assert (one.ring, one.oldest, one.ordered) == (loaded.ring, loaded.oldest, loaded.ordered)
        assert copied.ring == ring.tolist()


def test_a_quantile_is_exceeded_by_its_tail():
    scores = np.random.default_rng(0).gamma(2.0, 1.0, WINDOW)
    recent = scores_of(scores)
    for tail in (0.5, 0.1, 0.01):
        assert (scores > recent.quantile(tail)).mean() == pytest.approx(tail, abs=0.001)
    assert RecentScores().quantile(0.1) == float_info.max


@pytest.mark.parametrize(("n", "held"), [(EARLY - 1, True), (EARLY, False)])
def test_few_scores_hold_a_quantile_to_the_fence(n, held):
    """The largest of a few scores may be an anomaly that hides the next one."""
    scores = np.append(np.linspace(0.0, 2.0, n - 1), 1e6)
    quantile = scores_of(scores).quantile(1e-3)
    assert (quantile < 2.0 + FENCE * 2.0) == held


@pytest.mark.parametrize(("length", "oldest"), [(WINDOW + 1, 0), (WINDOW, WINDOW), (WINDOW - 1, 3), (5, -1), (0, 1)])
def test_a_ring_that_cannot_be_is_refused(length, oldest):
    with pytest.raises(InvalidSnapshot):
        check_ring(np.zeros(length), oldest)
