"""What every rule does: give each score the threshold that it is compared with, and move by the labels."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray
from core.snapshot import Arrays, take


class Threshold(ABC):
    """A decision rule: a score above the threshold is flagged, a score equal to it passes.

    Scores, levels and thresholds are finite numbers, in nats of the user's units. A new rule is a subclass, a name in
    the config and a case in the factory. It must implement pass_by, label and value. If it remembers more than value,
    it must also implement state, check and load; if labels are costly to apply, settle.
    """

    value: float
    """The threshold of the next score, as of the last settle."""

    @abstractmethod
    def pass_by(self, scores: FloatArray) -> FloatArray:
        """Give each score (n,) its threshold (n,), then remember the scores.

        A score never moves its own threshold: the result is the same whether scores come one by one or all at once.
        """

    def levels(self, scores: FloatArray) -> FloatArray:
        """The level (n,) of each score (n,) if these scores come next. Pure. A record keeps it, for label.

        Zero unless the rule measures scores from a level that moves.
        """
        return np.zeros(len(scores))

    @abstractmethod
    def label(self, seq: int, score: float, label: int, level: float = 0.0) -> None:
        """Learn the label of sample seq: +1 anomalous, -1 normal, 0 if it is withdrawn.

        score and level are those of the time of the decision. A second label for a sample replaces the first.
        """

    def settle(self) -> None:
        """Bring value up to date with the labels. Call it before reading value."""
        return

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays of a snapshot, by name: all that a rule of the same config needs to go on, bit for bit."""
        return {"threshold": np.array([self.value])}

    def check(self, arrays: Arrays) -> None:
        """Raise InvalidSnapshot if no history could have produced this state. Changes nothing."""
        take(arrays, "threshold", np.float64, (1,))

    def load(self, arrays: Arrays) -> None:
        """Continue from a state that check has passed."""
        self.value = float(arrays["threshold"][0])
