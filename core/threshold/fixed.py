"""A threshold that the user sets."""

import numpy as np

from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take
from core.threshold.base import Threshold


class FixedThreshold(Threshold):
    """The user's number, whatever the labels say."""

    def check(self, arrays: Arrays) -> None:
        if take(arrays, "threshold", np.float64, (1,))[0] != self.value:
            raise InvalidSnapshot("its threshold is not its config's")

    def __init__(self, value: float) -> None:
        self.value = value

    def label(self, seq: int, score: float, label: int) -> None:
        pass
