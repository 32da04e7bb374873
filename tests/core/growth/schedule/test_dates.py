"""Splits fall due at the powers of beta."""

import itertools
from math import ceil

import pytest

from core.growth.schedule.dates import next_split, splits_due


@pytest.mark.parametrize("beta", [1.05, 1.3, 2.0, 3.8, 1000.0])
def test_splits_fall_due_at_the_powers_of_beta_however_rounds_cut_them(beta):
    """A beta that is no whole number never hits beta^k: the first t at or after it counts, once."""
    points = sorted({ceil(beta**k) for k in range(1, 200 if beta < 10 else 2) if beta**k < 3000})
    assert [t for t in range(1, 3000) if splits_due(beta, t - 1, t)] == points
    assert splits_due(beta, 0, 2999) == len(points)
    cuts = [0, 1, 7, 8, 100, 355, 1000, 2999]
    assert sum(splits_due(beta, a, b) for a, b in itertools.pairwise(cuts)) == len(points)


def test_next_split_is_later_and_the_far_future_is_quick():
    for t in (0, 1, 2, 31, 10**6, 10**15):
        assert next_split(1.05, t) > t
