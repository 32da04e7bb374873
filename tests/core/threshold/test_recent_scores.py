"""The recent scores, against plain lists."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InvalidSnapshot
from core.threshold import recent_scores
from core.threshold.recent_scores import WINDOW, RecentScores, check_ring

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
        ranks, recent = RecentScores().ranks(scores), RecentScores()
        levels = []
        for value in values:
            levels.append(recent.median)
            recent.add(value)
    for i in range(len(values)):
        before = values[max(0, i - window) : i]
        assert levels[i] == pytest.approx(np.median(before) if before else 0.0)
        assert ranks[i] == (sum(other < values[i] for other in before) / len(before) if before else 0.0)


@given(SCORES, st.integers(1, 12))
@settings(deadline=None)
def test_a_loaded_ring_goes_on_alike(values, window):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recent_scores, "WINDOW", window)
        one = scores_of(np.array(values, float))
        ring, oldest = np.array(one.ring, float), one.oldest
        check_ring(ring, oldest)
        loaded = RecentScores()
        loaded.load(ring, oldest)
        for each in (one, loaded):
            each.add(2.5)
        assert (one.ring, one.oldest, one.ordered) == (loaded.ring, loaded.oldest, loaded.ordered)


@pytest.mark.parametrize(("length", "oldest"), [(WINDOW + 1, 0), (WINDOW, WINDOW), (WINDOW - 1, 3), (5, -1), (0, 1)])
def test_a_ring_that_cannot_be_is_refused(length, oldest):
    with pytest.raises(InvalidSnapshot):
        check_ring(np.zeros(length), oldest)
