"""When to split (Alg. 2's schedule)."""

from math import ceil


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
