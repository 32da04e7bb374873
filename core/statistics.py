"""Sufficient statistics of many cells at once (the nodes of a tree, or the sides of their 2-means).

Centred: count, mean, and scatter about the mean, never raw sums of squares, which cancel far from the origin.
"""

from typing import Final

import numpy as np

from core.arrays import FloatArray, IntArray, grown


class Statistics:
    """Count, mean and scatter of C cells over m features.

    scatter is (C, m, m), or (C, m) when diagonal. They are the sums of ITAN eq. moment for T(x) = (x, x x^T), centred.
    """

    FIELDS: Final = ("count", "mean", "scatter")

    def __init__(self, capacity: int, n_features: int, *, diagonal: bool) -> None:
        m = n_features
        self.diagonal = diagonal
        self.count = np.zeros(capacity)
        self.mean = np.zeros((capacity, m))
        self.scatter = np.zeros((capacity, m) if diagonal else (capacity, m, m))

    def grow(self, capacity: int) -> None:
        """Make room for more cells."""
        self.count, self.mean, self.scatter = (grown(a, capacity) for a in (self.count, self.mean, self.scatter))

    def add(self, weights: FloatArray, X: FloatArray, spread: FloatArray | None = None) -> None:
        """Merge a group of samples, shape (k, m), each counted by the cells where weights (k, C) is 1.

        spread (k, m) is a variance a feature that comes with each sample (of imputed values).
        """
        cells = np.flatnonzero(weights.any(0))
        if not cells.size:
            return
        W = np.ascontiguousarray(weights[:, cells])
        center = X.mean(0)
        Z = X - center
        n = W.sum(0)
        shift = (W.T @ Z) / n[:, None]
        scatter = self._squares(W, Z, spread) - n.reshape(-1, *self._ones) * self._outer(shift)
        self._merge(cells, n, shift + center, scatter)

    def remove(self, cells: IntArray, x: FloatArray, spread: FloatArray) -> None:
        """Take one sample, shape (m,), out of cells that counted it: add's inverse up to rounding."""
        n = self.count[cells] - 1
        last = n <= 0
        delta = x - self.mean[cells]
        factor = np.where(last, 0.0, (n + 1) / np.where(last, 1.0, n))
        scatter = self.scatter[cells] - factor.reshape(-1, *self._ones) * self._outer(delta)
        scatter -= spread if self.diagonal else np.diag(spread)
        scatter[last] = 0
        self.count[cells] = n
        self.mean[cells] = np.where(last[:, None], 0.0, self.mean[cells] - delta / np.where(last, 1.0, n)[:, None])
        self.scatter[cells] = self._clear_rounding(scatter)

    def insert(self, cells: IntArray, x: FloatArray, spread: FloatArray) -> None:
        """Count one sample, shape (m,), in these cells."""
        weights = np.zeros((1, len(self.count)))
        weights[0, cells] = 1
        self.add(weights, x[None], spread[None])

    def copy_cell(self, source: int, other: "Statistics", target: int) -> None:
        """Give a cell of another group of cells the statistics of one of ours."""
        other.count[target] = self.count[source]
        other.mean[target] = self.mean[source]
        other.scatter[target] = self.scatter[source]

    def principal_axis(self, cell: int) -> FloatArray:
        """The direction of most variance of one cell, one standard deviation long, its largest part positive."""
        scatter = np.diag(self.scatter[cell]) if self.diagonal else self.scatter[cell]
        variances, axes = np.linalg.eigh(scatter / max(self.count[cell], 1.0))
        axis: FloatArray = axes[:, -1] * np.sqrt(max(variances[-1], 0.0))
        return axis if axis[np.abs(axis).argmax()] >= 0 else -axis

    @property
    def _ones(self) -> tuple[int, ...]:
        return (1,) * (self.scatter.ndim - 1)

    def _outer(self, D: FloatArray) -> FloatArray:
        square: FloatArray = D * D if self.diagonal else D[:, :, None] * D[:, None, :]
        return square

    def _squares(self, W: FloatArray, Z: FloatArray, spread: FloatArray | None) -> FloatArray:
        squares = self._outer(Z)
        if spread is not None:
            squares = squares + (spread if self.diagonal else spread[:, :, None] * np.eye(Z.shape[1]))
        total: FloatArray = (W.T @ squares.reshape(len(Z), -1)).reshape(W.shape[1], *squares.shape[1:])
        return total

    def _merge(self, cells: IntArray, n: FloatArray, mean: FloatArray, scatter: FloatArray) -> None:
        old = self.count[cells]
        total = old + n
        delta = mean - self.mean[cells]
        self.scatter[cells] += scatter + (old * n / total).reshape(-1, *self._ones) * self._outer(delta)
        self.scatter[cells] = self._clear_rounding(self.scatter[cells])
        self.mean[cells] += (n / total)[:, None] * delta
        self.count[cells] = total

    def _clear_rounding(self, scatter: FloatArray) -> FloatArray:
        """Variances that came out a rounding error below zero (equal samples) are zero."""
        if self.diagonal:
            return np.maximum(scatter, 0.0)
        i = np.arange(scatter.shape[1])
        scatter[:, i, i] = np.maximum(scatter[:, i, i], 0.0)
        return scatter
