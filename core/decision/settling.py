"""The time after an incident was accepted, until there are scores enough of the new normal."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take
from core.threshold.ordinary_scores import ENOUGH, OrdinaryScores, finite
from core.threshold.sample_scores import SampleScores, check_seqs

ROOM: Final = 4.0
"""Scales of the ordinary tail above the highest score of an accepted incident that the threshold keeps at first."""
CALM: Final = 8
"""So many samples in a row below the threshold say that the change is over."""


class Settling:
    """While it lasts the threshold is not below floor, and scores that only the floor lets pass are gathered.

    With ENOUGH of them the ordinary scores begin again, from these. If CALM samples in a row need no floor, the change
    that was accepted is over, and nothing begins again.
    """

    def __init__(self) -> None:
        self.floor = -np.inf
        self.scores = SampleScores()
        self._calm = 0

    def begin(self, peak: float, scores: SampleScores, ordinary: OrdinaryScores) -> None:
        """An incident with these last scores, the highest of all at peak, was accepted."""
        self.floor = finite(peak + ROOM * ordinary.scale)
        self.scores, self._calm = scores, 0

    def end(self) -> None:
        """There is no floor any more."""
        self.floor, self.scores, self._calm = -np.inf, SampleScores(), 0

    def pass_by(self, seq: int, score: float, threshold: float) -> SampleScores | None:
        """A sample that is not flagged comes, and the threshold without the floor: the scores to begin again with."""
        if self.floor == -np.inf:
            return None
        if score > threshold:
            self.scores.add(seq, score)
            self._calm = 0
        else:
            self._calm += 1
        done = self.scores if len(self.scores) >= ENOUGH else None
        if done is not None or self._calm >= CALM:
            self.end()
        return done

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        floor = [] if self.floor == -np.inf else [self.floor]
        return {
            "settling_scores": np.array([*floor, *self.scores.scores()]),
            "settling_seqs": self.scores.seqs(),
            "settling_calm": np.array([self._calm]),
        }

    @staticmethod
    def check(arrays: Arrays, next_seq: int) -> None:
        """InvalidSnapshot if these cannot be its arrays."""
        n = len(take(arrays, "settling_scores", np.float64, (-1,)))
        calm = int(take(arrays, "settling_calm", np.int64, (1,))[0])
        if n > ENOUGH or not 0 <= calm < CALM or (n == 0 and calm > 0):
            raise InvalidSnapshot("what it gathers of a new normal is not valid")
        check_seqs(arrays, "settling_seqs", max(n - 1, 0), next_seq)

    def load(self, arrays: Arrays) -> None:
        """Take over a state."""
        self.end()
        if len(arrays["settling_scores"]):
            self.floor = float(arrays["settling_scores"][0])
            self.scores = SampleScores.of(arrays["settling_scores"][1:], arrays["settling_seqs"])
        self._calm = int(arrays["settling_calm"][0])
