"""When the paper's Alg. 2 splits a node."""

from math import ceil


def next_split(beta: float, n_learned: int) -> int:
    """The first t = ceil(beta^k), k >= 1, beyond n_learned, for beta > 1; t counts learned samples.

    The paper has t = beta^k, which a beta that is not whole never meets.

    >>> [next_split(2.0, t) for t in (0, 2, 3, 4)]
    [2, 4, 4, 8]
    """
    k = 1
    while (at := ceil(beta**k)) <= n_learned:
        k += 1
    return at


def splits_due(beta: float, before: int, after: int) -> int:
    """How many splits are due while the number of learned samples goes from before to after.

    >>> splits_due(2.0, 3, 20)
    3
    """
    due = 0
    while (before := next_split(beta, before)) <= after:
        due += 1
    return due
