"""What every rule does: say from which score on samples are flagged, and move that by scores and labels."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.snapshot import Arrays, take
from core.threshold.ordinary_scores import OrdinaryScores


class Threshold(ABC):
    """Says from which score on samples are flagged; value is for the next score.

    follows tells whether it moves by the ordinary scores, and so by what is accepted as the new normal. most is the
    share of the samples beyond which scores lift it by their number alone; none do if it does not follow.
    """

    value: float
    follows = False
    most = inf

    def follow(self, ordinary: OrdinaryScores, n_seen: int, age: Callable[[int], int]) -> None:
        """Bring value up to date with the labels and the ordinary scores, after n_seen samples.

        age says of a seq how many of them came since, with both ends.
        """
        return

    @abstractmethod
    def label(self, seq: int, score: float, label: int) -> None:
        """Learn that a sample, of this score at decision, is anomalous (+1), normal (-1) or unknown again (0)."""

    def adopt(self, other: "Threshold") -> None:
        """Go on from another rule, of another config: take over as much of what it has learned as fits."""
        return

    def renumber(self, shift: int) -> None:
        """Follow the seqs of the samples when they are numbered anew."""
        return

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        return {"threshold": np.array([self.value])}

    def check(self, arrays: Arrays) -> None:
        """InvalidSnapshot if a state does not fit."""
        take(arrays, "threshold", np.float64, (1,))

    def load(self, arrays: Arrays) -> None:
        """Take over a state."""
        self.value = float(arrays["threshold"][0])
