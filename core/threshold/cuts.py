"""Thresholds between labelled scores, and what each would have cost."""

from sys import float_info

import numpy as np

from core.arrays import FloatArray


def cuts_between(score: FloatArray) -> FloatArray:
    """Thresholds that tell n ordered scores apart: below all, between each two, above all: (n + 1,).

    >>> cuts_between(np.array([1.0, 3.0]))
    array([1., 2., 3.])
    """
    halfway = score[:-1] / 2 + score[1:] / 2
    least = float(score[0])
    below = max(least - 1e-9 * max(1.0, abs(least)), -float_info.max)  # a score may itself be the lowest double
    return np.concatenate([[below], halfway, score[-1:]])


def cost_of_cuts(cuts: FloatArray, score: FloatArray, step: FloatArray) -> FloatArray:
    """Cost of each cut, up to a constant: flagged is score > cut, so a score equal to the cut is passed."""
    total = np.concatenate([[0.0], np.cumsum(step)])
    cost: FloatArray = total[score.searchsorted(cuts, "right")]
    return cost
