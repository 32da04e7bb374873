"""Two kernel estimates: how dense known anomalies lie round a sample, and how dense normals do."""

from typing import Final

import numpy as np

from core.arrays import FloatArray, IntArray, product_by_blocks

WIDTH: Final = 0.1
LEAST_WIDTH: Final = 1e-6
"""The squared width of a kernel, as a share of the summed variance of normals, and at least. Chosen by hand."""
FLOOR: Final = 0.1
LEAST_FLOOR: Final = 1e-12
"""Both estimates have a floor: this share of what known anomalies have of each other, and at least. Chosen by hand."""
CHUNK_ROWS: Final = 64
"""So many rows of distances stay in the cache of a processor."""
PROBES: Final = 32
"""Known anomalies that tell the floor, the last ones. Chosen by hand."""


class KernelRatio:
    """The log ratio of two kernel estimates, eq. (35): of known anomalies (a, m), at least one, and of normals (n, m).

    Where both are far off the floor makes it 0: what resembles nothing known is no more anomalous for it. center (m,)
    is a place amid the samples: so far from the origin no digits are lost.

    >>> normals = np.random.default_rng(0).normal(size=(99, 2))
    >>> ratio = KernelRatio(np.full((3, 2), 5.0), normals, center=np.zeros(2))
    >>> ratio.log_ratio(np.array([[5.0, 5.0], [0.0, 0.0], [-9.0, 9.0]])).round(1)
    array([ 2.8, -0.7, -0. ])
    """

    def __init__(self, anomalies: FloatArray, normals: FloatArray, center: FloatArray) -> None:
        a, n = len(anomalies), len(normals)
        known = np.concatenate([anomalies, normals])
        self._center = center
        width = WIDTH * known.shape[1] * float(np.median(normals.var(0))) + LEAST_WIDTH
        self._columns = _as_columns(known - self._center, width)
        self._anomalous = np.ascontiguousarray(self._columns[:, :a])
        self._shares = np.zeros((a + n, 2))
        self._shares[:a, 0], self._shares[a:, 1] = 1 / a, 1 / n
        among = _kernels(self._distances(anomalies[-PROBES:], self._anomalous))
        among[np.arange(len(among)), np.arange(a - len(among), a)] = 0.0
        self._floor = FLOOR * max(float(np.median(among.sum(1) / a)), LEAST_FLOOR)

    def log_ratio(self, X: FloatArray) -> FloatArray:
        """L of samples (n, m), (n,): above 0 where they look more like known anomalies than like normals."""
        parts = [self._densities(X[start : start + CHUNK_ROWS]) for start in range(0, len(X), CHUNK_ROWS)]
        dense = np.log(np.concatenate([np.empty((0, 2)), *parts]) + self._floor)
        ratio: FloatArray = dense[:, 0] - dense[:, 1]
        return ratio

    def _densities(self, X: FloatArray) -> FloatArray:
        """Both estimates, (n, 2)."""
        return product_by_blocks(_kernels(self._distances(X, self._columns)), self._shares)

    def nearest(self, X: FloatArray) -> IntArray:
        """The place of the known anomaly that is nearest to each sample, (n,)."""
        nearest: IntArray = self._distances(X, self._anomalous).argmin(1)
        return nearest

    def _distances(self, X: FloatArray, columns: FloatArray) -> FloatArray:
        """1 + |x - x_i|^2 / h of samples (n, m) and k known ones, (n, k): linear in x, |x|^2 and 1."""
        off = X - self._center
        rows = np.concatenate([off, (off * off).sum(1, keepdims=True), np.ones((len(X), 1))], 1)
        return np.maximum(product_by_blocks(rows, columns), 1.0)


def _as_columns(known: FloatArray, width: float) -> FloatArray:
    """What distances from known samples (k, m) are linear by, (m + 2, k).

    Row by row in memory: with the other order a product's last bits depend on the place of a sample in its block.
    """
    squares = (known * known).sum(1)
    columns = np.empty((known.shape[1] + 2, len(known)))
    columns[:-2], columns[-2], columns[-1] = -2 * known.T, 1.0, width + squares
    columns /= width
    return columns


def _kernels(distances: FloatArray) -> FloatArray:
    """Kernels of distances, in their place."""
    np.reciprocal(distances, out=distances)
    return np.square(distances, out=distances)
