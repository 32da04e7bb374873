"""How far the weights move in one round."""

from math import sqrt
from typing import Final

SOFT_BAYES_RATE: Final = 0.02
"""The least rate, which keeps the weights moving on streams that change. Chosen by hand."""


def theorem_1_rate(complexity: float, largest_ratio: float, mean_loss: float, rounds: float) -> float:
    """Theorem 1's theta, eq. (12), from sqrt(ln N), R, A and T.

    The paper's bound on the regret for this rate is false as stated; what holds is eq. (13).

    >>> round(theorem_1_rate(sqrt(2.0794), largest_ratio=8, mean_loss=0.829, rounds=3000), 4)
    0.0044
    """
    return 2 * complexity / (largest_ratio * sqrt(2 * mean_loss * rounds) + largest_ratio**2 * complexity)


def soft_bayes_rate(count: float) -> float:
    """The eta of eq. (14) for the sample that comes after count others.

    >>> [soft_bayes_rate(count) for count in (0, 8, 1000)]
    [0.5, 0.1, 0.02]
    """
    return max(SOFT_BAYES_RATE, 1 / (count + 2))
