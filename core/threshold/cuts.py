"""Thresholds between labelled scores, and what each of them would have cost."""

from sys import float_info

import numpy as np

from core.arrays import FloatArray


def cuts_between(score: FloatArray) -> FloatArray:
    """Thresholds (n + 1,) that tell n >= 1 scores in rising order apart: below all, halfway between two, above all.

    The last one is the largest score itself, which passes.

    >>> cuts_between(np.array([1.0, 3.0]))
    array([1., 2., 3.])
    """
    halfway = score[:-1] / 2 + score[1:] / 2
    least = float(score[0])
    below = max(least - 1e-9 * max(1.0, abs(least)), -float_info.max)  # a score may itself be the lowest double
    return np.concatenate([[below], halfway, score[-1:]])


def cost_of_cuts(cuts: FloatArray, score: FloatArray, step: FloatArray) -> FloatArray:
    """L(c) of eq. (26) for each cut (k,), from n scores in rising order and what each adds to L when it passes (n,).

    A score equal to the cut passes. All costs lack the same constant, the cost of flagging everything.

    >>> cost_of_cuts(np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 3.0]), np.array([-1.0, 5.0]))
    array([ 0., -1., -1.,  4.])
    """
    total = np.concatenate([[0.0], np.cumsum(step)])
    cost: FloatArray = total[score.searchsorted(cuts, "right")]
    return cost
