"""What every rule does: give each score the threshold that it is compared with, and move by the labels."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray
from core.snapshot import Arrays, take


class Threshold(ABC):
    """Gives each score its threshold, and moves by labels; value is the one for the next score."""

    value: float

    @abstractmethod
    def pass_by(self, scores: FloatArray) -> FloatArray:
        """The threshold that each score (n,) met, which it cannot have moved itself; then take note of the scores."""

    def levels(self, scores: FloatArray) -> FloatArray:
        """The level (n,) from which each score (n,) will be measured if they come next, for label; changes nothing."""
        return np.zeros(len(scores))

    @abstractmethod
    def label(self, seq: int, score: float, label: int, level: float = 0.0) -> None:
        """Learn that a sample is anomalous (+1) or normal (-1), or that its label is void (0).

        score and level are those of the decision.
        """

    def settle(self) -> None:
        """Bring value up to date with the labels; called before it is read."""
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
