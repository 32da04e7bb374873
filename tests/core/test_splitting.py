"""When to split, and which node."""

import itertools
from math import ceil

import numpy as np
import pytest

from core.splitting import most_separated, next_split, splits_due


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


def test_the_most_separated_eligible_node_is_chosen_the_first_of_equals():
    separation = np.array([1.0, 3.0, 5.0, 3.0])
    assert most_separated(separation, np.array([True, True, False, True])) == 1
    assert most_separated(separation, np.zeros(4, bool)) is None
    assert most_separated(np.zeros(4), np.ones(4, bool)) is None
