"""How samples are learned, and what must be kept of one to take it out again."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class LearnedSample:
    """How one sample was learned: its number among the learned samples (ordinal), its moment on the clock, its value.

    x (m,) is what entered the statistics, spread (m,) the variance of filled values. left (N,) says which side of each
    node's sequential 2-means counted it; it is empty, (0,), for trees without one.
    """

    ordinal: int
    moment: float
    x: FloatArray
    spread: FloatArray
    left: BoolArray


@dataclass(slots=True)
class LearnedBatch:
    """The n samples of a round: a LearnedSample's fields as columns; weight (n,) is what each counts at its end."""

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
    """The n samples of a round in g groups: key (g,) of each group, and where it starts, first (g,), in order (n,)."""

    key: IntArray
    first: IntArray
    order: IntArray

    @classmethod
    def by(cls, keys: IntArray) -> "Groups":
        """Group samples by their keys (n,): groups by rising key, samples within a group in their order."""
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        return cls(ordered[first], first, order)

    def sample(self, rows: Any) -> Any:
        """The rows (g, ...), out of (n, ...), of the first sample of each group."""
        return rows[self.order[self.first]]
