"""Forgetting: how much a sample still counts, after so many learned samples or seconds."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray
from core.config import DetectorConfig
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take
from core.validation import LATEST

HALVINGS: Final = 7.0
"""After so many half-lives, when it counts less than 1 %, a sample is as good as forgotten."""
NEVER: Final = 1e217
"""Minus this is the time of a clock that has not started, in a snapshot."""
NEGLIGIBLE: Final = 1e-200
"""A lower weight is taken as 0: nothing is added, and nothing taken out again."""
MOST_PAST: Final = 64
"""Earlier half-lives that are remembered; of what is older nothing is added, and nothing taken out again."""
AT_ONCE: Final = 1e200
"""A rate by which everything is forgotten."""


class Forgetting:
    """A clock, and the half-life by which samples lose weight, eq. (21); without one everything counts for ever.

    The clock counts learned samples, or seconds of their timestamps. It never goes back. The paper forgets nothing.
    past (k, 2) has the earlier half-lives: until which moment each held, and halvings a unit of the clock by it.
    """

    def __init__(self, config: DetectorConfig) -> None:
        self.in_seconds = config.half_life_seconds is not None
        self.half_life = config.half_life_seconds or config.half_life_samples
        self.now = -np.inf
        self.past = np.zeros((0, 2))

    def follow(self, earlier: "Forgetting") -> None:
        """Go on from a clock of another half-life: what has been forgotten by now stays so."""
        self.now, self.past = earlier.now, earlier.past
        if earlier.half_life == self.half_life or not np.isfinite(self.now):
            return
        if not len(self.past) or self.past[-1, 0] < self.now:
            rate = 0.0 if earlier.half_life is None else 1.0 / earlier.half_life
            self.past = np.concatenate([self.past, [[self.now, rate]]])[-MOST_PAST:]
            if len(self.past) == MOST_PAST:
                self.past[0, 1] = AT_ONCE

    def begin_warm(self, n_learned: int) -> None:
        """Take what was learned as so many samples; a clock of seconds goes on."""
        self.past = np.zeros((0, 2))
        if not self.in_seconds and n_learned:
            self.now = float(n_learned)

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
        if self.half_life is None and not len(self.past):
            return np.ones(len(moment))
        weight: FloatArray = 0.5 ** self._halvings(moment)
        weight[weight < NEGLIGIBLE] = 0.0
        return weight

    def _halvings(self, moment: FloatArray) -> FloatArray:
        """How often samples learned at these moments (n,) have lost half of their weight."""
        begin = np.maximum(moment, self.past[-1, 0]) if len(self.past) else moment
        halvings = np.maximum((self.now - begin) / (self.half_life or np.inf), 0.0)
        since = -np.inf
        for until, rate in self.past.tolist():
            halvings += np.maximum(until - np.maximum(moment, since), 0.0) * rate
            since = until
        return halvings

    def check(self, arrays: Arrays, n_learned: int) -> None:
        """Raise InvalidSnapshot if the clock cannot be like this after so many learned samples."""
        now = float(take(arrays, "clock", np.float64, (1,))[0])
        if n_learned == 0 or not self.in_seconds:
            fits = now == n_learned if n_learned else now == -NEVER
        else:
            fits = abs(now) <= LATEST
        if not fits:
            raise InvalidSnapshot("its clock does not fit its samples")
        if "clock_past" in arrays:
            self._check_past(take(arrays, "clock_past", np.float64, (-1, 2)), now)

    @staticmethod
    def _check_past(past: FloatArray, now: float) -> None:
        until, rate = past.T
        if len(past) > MOST_PAST or not ((np.diff(until, append=now) > 0)[:-1].all() and (until <= now).all()):
            raise InvalidSnapshot("its earlier half-lives are too many, or not in order")
        if not (((rate >= 0) & (rate <= 1)) | (rate == AT_ONCE)).all():
            raise InvalidSnapshot("it has had a half-life that is none")

    def check_times(self, time: FloatArray) -> None:
        """Raise InvalidSnapshot if these timestamps (n,) are out of range, or missing although the clock needs them."""
        known = time[~np.isnan(time)]
        if (np.abs(known) > LATEST).any() or (self.in_seconds and len(known) < len(time)):
            raise InvalidSnapshot("its samples have no time, or none that can be")

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays of a snapshot, by name; the time on the clock is finite even before it has started."""
        past = {"clock_past": self.past} if len(self.past) else {}
        return {"clock": np.array([max(self.now, -NEVER)])} | past

    def load(self, arrays: Arrays) -> None:
        """Continue from a state that check has passed."""
        now = float(arrays["clock"][0])
        self.now = now if now > -NEVER else -np.inf
        self.past = arrays.get("clock_past", self.past)

    def memory(self, n_learned: int) -> float:
        """How many of so many learned samples still count; all of them if the clock counts seconds."""
        if self.half_life is None or self.in_seconds:
            return n_learned
        return min(n_learned, HALVINGS * self.half_life)
