"""Scores by the last samples, such as the rolling z-score."""

from collections.abc import Callable
from typing import Final

import numpy as np

from app.replay.rivals.rival import Floats

WINDOW: Final = 256
ENOUGH: Final = 32
JUMP: Final = 1e6
"""The score of a feature that moves for the first time in a window."""


class FilledIn:
    """Replaces a missing value by the one before it, or by 0 if there is none."""

    def __init__(self) -> None:
        self._last: Floats | None = None

    def fill(self, X: Floats) -> Floats:
        """Give a copy of samples (n, m) without NaN."""
        filled = X.copy()
        for x in filled:
            last = np.zeros(len(x)) if self._last is None else self._last
            x[np.isnan(x)] = last[np.isnan(x)]
            self._last = x
        return filled


class Windowed:
    """Scores each sample by the 256 before it, once there are 32; a missing value repeats the one before it."""

    def __init__(self, rule: Callable[[Floats, Floats], float]) -> None:
        self._rule = rule
        self._filled = FilledIn()
        self._past: Floats | None = None

    def score(self, X: Floats) -> Floats:
        """Score samples (n, m), each before it joins the window."""
        filled = self._filled.fill(X)
        past = filled[:0] if self._past is None else self._past
        seen = np.concatenate([past, filled])
        ends = range(len(past), len(seen))
        scores = [self._rule(seen[max(t - WINDOW, 0) : t], seen[t]) if t >= ENOUGH else np.nan for t in ends]
        self._past = seen[-WINDOW:]
        return np.array(scores)


def z_score(window: Floats, x: Floats) -> float:
    """Give the largest distance from the mean, in deviations."""
    return largest(x - window.mean(0), window.std(0))


def largest(distance: Floats, scale: Floats) -> float:
    """Give the largest share; a feature that has not moved counts as 0 while it stays, as 1e6 when it moves.

    >>> largest(np.array([1.0, 0.0, 3.0]), np.array([1.0, 0.0, 2.0]))
    1.5
    """
    share = np.abs(distance) / np.where(scale > 0, scale, np.inf)
    return float(np.where((scale == 0) & (distance != 0), JUMP, share).max())
