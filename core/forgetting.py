"""Forgetting: what a sample still counts, by the samples learned or the seconds gone since."""

from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.config import DetectorConfig
from core.errors import InvalidSnapshot
from core.validation import LATEST

HALVINGS: Final = 7.0
"""After so many half-lives, when it counts less than 1 %, a sample is as good as forgotten."""


NEVER: Final = 1e217
NEGLIGIBLE: Final = 1e-200
"""A sample that counts less counts nothing: there is nothing to add, or to take out again."""


class Forgetting:
    """A clock, and the half-life of what is learned on it; without a half-life everything counts for ever.

    The clock counts learned samples, or the seconds of their timestamps; it never goes back.
    """

    def __init__(self, config: DetectorConfig) -> None:
        self.in_seconds = config.half_life_seconds is not None
        self.half_life = config.half_life_seconds or config.half_life_samples
        self.now = -np.inf

    def moments(self, ordinal: FloatArray, time: FloatArray) -> FloatArray:
        """When samples of these ordinals and timestamps (n,) happen on the clock."""
        return time if self.in_seconds else ordinal

    def advance(self, moment: float) -> float:
        """Move the clock on; what all that was learned before counts now, relative to what it did."""
        before, self.now = self.now, max(self.now, moment)
        if self.half_life is None or not np.isfinite(before):
            return 1.0
        return float(0.5 ** ((self.now - before) / self.half_life))

    def weight(self, moment: FloatArray) -> FloatArray:
        """What samples of these moments (n,) count now; 0 if that is negligible."""
        if self.half_life is None:
            return np.ones(len(moment))
        weight: FloatArray = 0.5 ** np.maximum((self.now - moment) / self.half_life, 0.0)
        weight[weight < NEGLIGIBLE] = 0.0
        return weight

    def check(self, now: float, n_learned: int) -> None:
        """InvalidSnapshot if the clock cannot show this after so many samples were learned."""
        if n_learned == 0 or not self.in_seconds:
            fits = now == n_learned if n_learned else now == -NEVER
        else:
            fits = abs(now) <= LATEST
        if not fits:
            raise InvalidSnapshot("its clock does not fit its samples")

    def check_times(self, time: FloatArray) -> None:
        """InvalidSnapshot if these (n,) are not timestamps, or missing where they are needed."""
        known = time[~np.isnan(time)]
        if (np.abs(known) > LATEST).any() or (self.in_seconds and len(known) < len(time)):
            raise InvalidSnapshot("its samples have no time, or none that can be")

    def state(self) -> float:
        """The time on the clock, a number even before it has started."""
        return max(self.now, -NEVER)

    def load(self, now: float) -> None:
        """Set the clock."""
        self.now = now if now > -NEVER else -np.inf

    def memory(self, n_learned: int) -> float:
        """How many samples still count for something."""
        if self.half_life is None or self.in_seconds:
            return n_learned
        return min(n_learned, HALVINGS * self.half_life)
