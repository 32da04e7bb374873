"""When to split, and which node (Alg. 2's schedule)."""

from math import ceil

import numpy as np

from core.arrays import BoolArray, FloatArray


def next_split(beta: float, n_learned: int) -> int:
    """The first t = ceil(beta^k), k >= 1, after n_learned samples; t counts learned samples.

    >>> [next_split(2.0, t) for t in (0, 2, 3, 4)]
    [2, 4, 4, 8]
    """
    k = 1
    while (at := ceil(beta**k)) <= n_learned:
        k += 1
    return at


def splits_due(beta: float, before: int, after: int) -> int:
    """How many scheduled points lie in (before, after].

    >>> splits_due(2.0, 3, 20)
    3
    """
    due = 0
    while (before := next_split(beta, before)) <= after:
        due += 1
    return due


def most_separated(separation: FloatArray, eligible: BoolArray) -> int | None:
    """The eligible node (N,) with the largest ratio of Alg. 2, or None if no node has two distinct centroids."""
    ratio = np.where(eligible, separation, 0.0)
    node = int(ratio.argmax())
    return node if ratio[node] > 0 else None
