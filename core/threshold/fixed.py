"""A threshold that the user sets."""

import numpy as np

from core.arrays import FloatArray
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take
from core.threshold.base import Threshold


class FixedThreshold(Threshold):
    """The user's number, in nats. Labels do not move it."""

    def __init__(self, value: float) -> None:
        self.value = value

    def pass_by(self, scores: FloatArray) -> FloatArray:
        return np.full(len(scores), self.value)

    def label(self, seq: int, score: float, label: int, level: float = 0.0) -> None:
        pass

    def check(self, arrays: Arrays) -> None:
        if take(arrays, "threshold", np.float64, (1,))[0] != self.value:
            raise InvalidSnapshot("its threshold is not its config's")
