"""What the densities of many nodes have in common, with full and with diagonal covariances."""

from collections.abc import Callable
from typing import Final

import numpy as np

from core.arrays import BoolArray, FloatArray, grown, product_by_blocks
from core.families.base import NodeDensities

CHUNK_ROWS: Final = 64
"""Rows scored at a time, which bounds the memory of a large batch and keeps the work in the processor's cache."""


class NodeArrays(NodeDensities):
    """Densities kept in the arrays named ARRAYS, whose rows are the nodes."""

    ARRAYS: tuple[str, ...] = ()

    mean: FloatArray

    def _make_room(self, size: int) -> None:
        if size > len(self.mean):
            for name in self.ARRAYS:
                setattr(self, name, grown(getattr(self, name), size))


def by_chunks(X: FloatArray, log_density: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Log densities (n, N) of samples (n, m), CHUNK_ROWS at a time."""
    if len(X) <= CHUNK_ROWS:
        return log_density(X)
    return np.concatenate([log_density(X[start : start + CHUNK_ROWS]) for start in range(0, len(X), CHUNK_ROWS)])


def drawn_to(X: FloatArray, suspect: BoolArray, mean: FloatArray, whitening: FloatArray, reach: float) -> FloatArray:
    """Samples (n, m), the suspect ones (n,) drawn in to reach deviations of a mean (m,), eq. (18); X if none is."""
    if not suspect.any():
        return X
    rows = np.flatnonzero(suspect)
    off = X[rows] - mean
    length = np.sqrt((product_by_blocks(off, whitening.T) ** 2).sum(1))
    drawn = X.copy()
    drawn[rows] = mean + off * np.minimum(1.0, reach / np.maximum(length, reach))[:, None]
    return drawn
