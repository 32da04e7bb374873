"""Samples as the density learns them, and what must be kept of one to take it back."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class LearnedSample:
    """How one sample was learned: its number among the learned, its moment on the clock of forgetting, and as what.

    x (m,) is what entered the statistics, spread (m,) the variance of what was imputed, left (w,) the sides that a
    sequential 2-means gave it, for trees that grow by one.
    """

    ordinal: int
    moment: float
    x: FloatArray
    spread: FloatArray
    left: BoolArray


@dataclass(slots=True)
class LearnedBatch:
    """A round of n samples: a LearnedSample's fields as columns; weight (n,) is what each counts at its end."""

    x: FloatArray
    spread: FloatArray
    ordinal: IntArray
    moment: FloatArray
    left: BoolArray
    weight: FloatArray

    def sorted(self, order: IntArray) -> "LearnedBatch":
        """The same samples in another order."""
        return LearnedBatch(*(getattr(self, name)[order] for name in self.__slots__))


@dataclass(slots=True)
class Groups:
    """The samples of a round, gathered by a key: key (g,) of each group, first (g,) where it starts in order (n,)."""

    key: IntArray
    first: IntArray
    order: IntArray

    @classmethod
    def by(cls, keys: IntArray) -> "Groups":
        """Group samples by their keys (n,), in order of the keys; samples of one group stay in their order."""
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        return cls(ordered[first], first, order)

    def sample(self, rows: Any) -> Any:
        """Of rows (n, ...), one of each group."""
        return rows[self.order[self.first]]
