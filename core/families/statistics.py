"""Sufficient statistics of many cells at once: the nodes of a tree, or the sides of its candidates.

Kept centred, as count, mean and scatter about the mean: raw sums of squares cancel far from the origin.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray, IntArray, grown, packed, packed_width, unpacked, variances
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take

LAST: Final = 1e-9
"""A cell is empty if this share of the sample taken out is left: faded weights do not cancel to the last bit."""


@dataclass(slots=True)
class Moments:
    """Count (k,), mean (k, w) and scatter of k groups of rows.

    Only the first b of the w columns, the block, have a scatter: (k, b, b), or (k, b) when diagonal.
    """

    count: FloatArray
    mean: FloatArray
    scatter: FloatArray

    def pooled(self, group: IntArray, starts: IntArray) -> "Moments":
        """The moments of unions of groups: group (p,) lists the members, starts (k,) where each union begins."""
        n = self.count[group]
        count = np.add.reduceat(n, starts)
        mean = np.add.reduceat(n[:, None] * self.mean[group], starts) / _divisor(count)
        b = self.scatter.shape[1]
        off = self.mean[group, :b] - np.repeat(mean[:, :b], lengths(starts, len(group)), axis=0)
        squares = self.scatter[group] + outer(off, self.scatter.ndim == 2) * _spread_out(n, self.scatter)
        return Moments(count, mean, np.add.reduceat(squares, starts))


def lengths(starts: IntArray, total: int) -> IntArray:
    """The lengths (k,) of runs that begin at starts (k,) and fill total places."""
    ends: IntArray = np.append(starts[1:], total)
    return ends - starts


def outer(D: FloatArray, diagonal: bool) -> FloatArray:
    """The squares of rows (k, m): outer products (k, m, m), or (k, m) when diagonal."""
    square: FloatArray = D * D if diagonal else D[:, :, None] * D[:, None, :]
    return square


def moments_of(X: FloatArray, spread: FloatArray, weight: FloatArray, starts: IntArray, *, diagonal: bool) -> Moments:
    """The moments of runs of rows X (n, w), which begin at starts (k,).

    spread (n, b) is the variance of filled values, which adds to the scatter; its width is that of the block. weight
    (n,) is what each row counts.
    """
    count = np.add.reduceat(weight, starts)
    mean = np.add.reduceat(weight[:, None] * X, starts) / _divisor(count)
    b = spread.shape[1]
    off = X[:, :b] - np.repeat(mean[:, :b], lengths(starts, len(X)), axis=0)
    squares = outer(off, diagonal)
    if spread.any():
        squares = squares + (spread if diagonal else spread[:, :, None] * np.eye(b))
    return Moments(count, mean, np.add.reduceat(squares * _spread_out(weight, squares), starts))


def _divisor(count: FloatArray) -> FloatArray:
    """Counts (k, 1) to divide by; 1 for groups of samples so old that they count 0."""
    return np.where(count > 0, count, 1.0)[:, None]


def _spread_out(n: FloatArray, like: FloatArray) -> FloatArray:
    return n.reshape(-1, *(1,) * (like.ndim - 1))


class Statistics:
    """Count (C,), mean (C, b + n_apart) and scatter, (C, b, b) or (C, b) when diagonal, of C cells.

    They are the means of T(x) of eq. (4): in centred form for the Gaussian block, T(x) = (x, x x^T), and as they are
    for the n_apart columns of the factors.
    """

    def __init__(self, capacity: int, n_features: int, *, diagonal: bool, n_apart: int = 0) -> None:
        b = n_features
        self.diagonal, self.n_block, self.n_apart = diagonal, b, n_apart
        self.count = np.zeros(capacity)
        self.mean = np.zeros((capacity, b + n_apart))
        self.scatter = np.zeros((capacity, b) if diagonal else (capacity, b, b))

    def empty(self, capacity: int) -> "Statistics":
        """New cells for rows of the same columns, all empty."""
        return Statistics(capacity, self.n_block, diagonal=self.diagonal, n_apart=self.n_apart)

    def grow(self, capacity: int) -> None:
        """Make room for more cells."""
        self.count, self.mean, self.scatter = (grown(a, capacity) for a in (self.count, self.mean, self.scatter))

    def of(self, cells: IntArray) -> Moments:
        """A copy of these cells (k,)."""
        return Moments(self.count[cells], self.mean[cells], self.scatter[cells])

    def put(self, cells: IntArray, moments: Moments) -> None:
        """Overwrite these cells (k,)."""
        self.count[cells], self.mean[cells], self.scatter[cells] = moments.count, moments.mean, moments.scatter

    def merge(self, cells: IntArray, moments: Moments) -> None:
        """Add groups (k,) of samples to distinct cells (k,); a group of weight 0 changes nothing."""
        old, new = self.count[cells], moments.count
        total = np.where(old + new > 0, old + new, 1.0)
        delta = moments.mean - self.mean[cells]
        between = outer(delta[:, : self.n_block], self.diagonal) * _spread_out(old * new / total, self.scatter)
        self.scatter[cells] = self._cleared(self.scatter[cells] + moments.scatter + between)
        self.mean[cells] += (new / total)[:, None] * delta
        self.count[cells] = old + new

    def insert(self, cells: IntArray, x: FloatArray, spread: FloatArray, weight: float = 1.0) -> None:
        """Count a row x (w,), with the variance (b,) of its filled values, in distinct cells (k,)."""
        one = moments_of(x[None], spread[None], np.array([weight]), np.zeros(1, np.int64), diagonal=self.diagonal)
        same = np.zeros(len(cells), np.int64)
        self.merge(cells, Moments(one.count[same], one.mean[same], one.scatter[same]))

    def remove(self, cells: IntArray, x: FloatArray, spread: FloatArray, weight: float = 1.0) -> None:
        """Take a row out of cells that counted it: the inverse of insert, up to rounding."""
        old = self.count[cells]
        last = old <= weight * (1 + LAST)
        rest = np.where(last, 1.0, old - weight)
        delta = x - self.mean[cells]
        within = spread if self.diagonal else np.diag(spread)
        between = outer(delta[:, : self.n_block], self.diagonal) * _spread_out(weight * old / rest, self.scatter)
        scatter = self._cleared(self.scatter[cells] - between - weight * within)
        scatter[last] = 0
        self.mean[cells] = np.where(last[:, None], 0.0, self.mean[cells] - (weight / rest)[:, None] * delta)
        self.count[cells] = np.where(last, 0.0, rest)
        self.scatter[cells] = scatter

    def fade(self, factor: float) -> None:
        """Multiply the weight of all samples so far by a factor, 0 to 1; means stay."""
        self.count *= factor
        self.scatter *= factor

    def state(self, name: str) -> dict[str, NDArray[Any]]:
        """The arrays of a snapshot; their names begin with this name."""
        return {f"{name}_count": self.count, f"{name}_mean": self.mean, f"{name}_scatter": packed(self.scatter)}

    def check(self, arrays: Arrays, name: str, n_cells: int) -> None:
        """Raise InvalidSnapshot if no samples could have produced these cells."""
        count = take(arrays, f"{name}_count", np.float64, (n_cells,))
        take(arrays, f"{name}_mean", np.float64, (n_cells, self.mean.shape[1]))
        rows = take(arrays, f"{name}_scatter", np.float64, (n_cells, packed_width(self.n_block, self.diagonal)))
        if (variances(rows, self.n_block) < 0).any() or (count < 0).any():
            raise InvalidSnapshot(f"its {name} statistics have a count or variance below zero")

    def load(self, arrays: Arrays, name: str) -> None:
        """Continue from a state that check has passed, with as many cells as it has."""
        self.count, self.mean = arrays[f"{name}_count"], arrays[f"{name}_mean"]
        self.scatter = unpacked(arrays[f"{name}_scatter"], self.scatter)

    def _cleared(self, scatter: FloatArray) -> FloatArray:
        """Set variances that rounding left below zero (equal samples) to zero."""
        if self.diagonal:
            return np.maximum(scatter, 0.0)
        i = np.arange(scatter.shape[1])
        scatter[:, i, i] = np.maximum(scatter[:, i, i], 0.0)
        return scatter
