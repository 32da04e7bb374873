"""How far the weights move in one round."""

from math import sqrt
from typing import Final

SOFT_BAYES_RATE: Final = 0.02


def theorem_1_rate(complexity: float, largest_ratio: float, mean_loss: float, rounds: float) -> float:
    """Theorem 1's theta for complexity sqrt(ln N), R, A and T."""
    return 2 * complexity / (largest_ratio * sqrt(2 * mean_loss * rounds) + largest_ratio**2 * complexity)


def soft_bayes_rate(count: float) -> float:
    """Soft-Bayes' eta for the sample after count others."""
    return max(SOFT_BAYES_RATE, 1 / (count + 2))
