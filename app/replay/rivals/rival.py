"""What every rival does: score each sample before it learns it, decide, and learn labels when they come."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]


class Decisions(NamedTuple):
    """Scores (n,), high = anomalous and NaN while there is none, and what was flagged (n,)."""

    score: Floats
    flagged: Bools


class Rival(Protocol):
    """Decides samples one after the other; positions count the samples from 0."""

    def decide(self, X: Floats, times: Floats | None) -> Decisions:
        """Decide samples (n, m), NaN = missing, at times (n,) in seconds, and learn each after it was decided."""

    def label(self, positions: Integers, anomalous: Bools) -> None:
        """Learn the labels of samples, each once, in rising order."""


class Scorer(Protocol):
    """Scores samples without a threshold of its own."""

    def score(self, X: Floats) -> Floats:
        """Score samples (n, m), each before it is learned; high = anomalous, NaN while there is no score."""
