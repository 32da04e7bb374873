"""Costs of cuts, against counting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.threshold.cuts import cost_of_cuts, cuts_between


@given(st.lists(st.floats(-1e6, 1e6) | st.integers(0, 3).map(float), min_size=1, max_size=30), st.randoms())
def test_costs_of_cuts_equal_counting(scores, random):
    score = np.sort(scores)
    step = np.array([random.choice([2.0, -1.0]) for _ in scores])
    cuts = cuts_between(score)
    counted = [step[score <= cut].sum() for cut in cuts]
    assert np.allclose(cost_of_cuts(cuts, score, step), counted)
    assert cuts[0] < score[0]
    assert cuts[-1] == score[-1]
