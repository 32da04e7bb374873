"""Forgetting: how much a sample still counts, after so many learned samples or seconds."""

from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.config import DetectorConfig
from core.errors import InvalidSnapshot
from core.validation import LATEST

HALVINGS: Final = 7.0
"""After so many half-lives, when it counts less than 1 %, a sample is as good as forgotten."""
NEVER: Final = 1e217
"""Minus this is the time of a clock that has not started, in a snapshot."""
NEGLIGIBLE: Final = 1e-200
"""A lower weight is taken as 0: nothing is added, and nothing taken out again."""


class Forgetting:
    """A clock, and the half-life by which samples lose weight, eq. (21); without one everything counts for ever.

    The clock counts learned samples, or seconds of their timestamps. It never goes back. The paper forgets nothing.
    """

    def __init__(self, config: DetectorConfig) -> None:
        self.in_seconds = config.half_life_seconds is not None
        self.half_life = config.half_life_seconds or config.half_life_samples
        self.now = -np.inf

    def moments(self, ordinal: FloatArray, time: FloatArray) -> FloatArray:
        """The moments (n,) on the clock of samples with these ordinals and timestamps (n,)."""
        return time if self.in_seconds else ordinal

    def advance(self, moment: float) -> float:
        """Move the clock on to a moment; the factor, 0 to 1, by which everything learned before loses weight."""
        before, self.now = self.now, max(self.now, moment)
        if self.half_life is None or not np.isfinite(before):
            return 1.0
        return float(0.5 ** ((self.now - before) / self.half_life))

    def weight(self, moment: FloatArray) -> FloatArray:
        """The weights (n,), 0 to 1, of samples learned at these moments (n,)."""
        if self.half_life is None:
            return np.ones(len(moment))
        weight: FloatArray = 0.5 ** np.maximum((self.now - moment) / self.half_life, 0.0)
        weight[weight < NEGLIGIBLE] = 0.0
        return weight

    def check(self, now: float, n_learned: int) -> None:
        """Raise InvalidSnapshot if the clock cannot show this time after so many learned samples."""
        if n_learned == 0 or not self.in_seconds:
            fits = now == n_learned if n_learned else now == -NEVER
        else:
            fits = abs(now) <= LATEST
        if not fits:
            raise InvalidSnapshot("its clock does not fit its samples")

    def check_times(self, time: FloatArray) -> None:
        """Raise InvalidSnapshot if these timestamps (n,) are out of range, or missing although the clock needs them."""
        known = time[~np.isnan(time)]
        if (np.abs(known) > LATEST).any() or (self.in_seconds and len(known) < len(time)):
            raise InvalidSnapshot("its samples have no time, or none that can be")

    def state(self) -> float:
        """The time on the clock, finite even before it has started."""
        return max(self.now, -NEVER)

    def load(self, now: float) -> None:
        """Set the clock to a time that check has passed."""
        self.now = now if now > -NEVER else -np.inf

    def memory(self, n_learned: int) -> float:
        """How many of so many learned samples still count; all of them if the clock counts seconds."""
        if self.half_life is None or self.in_seconds:
            return n_learned
        return min(n_learned, HALVINGS * self.half_life)
