"""Stretches of time."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time in epoch seconds, both ends included."""

    first: float = -math.inf
    last: float = math.inf

    def holds(self, times: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Tell which times (n,) lie in it."""
        return (self.first <= times) & (times <= self.last)

    def overlaps(self, begin: float, end: float) -> bool:
        """Tell whether it has a moment in common with the time from begin to end."""
        return begin <= self.last and self.first <= end


ALWAYS = Span()
