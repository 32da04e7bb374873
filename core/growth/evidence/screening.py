"""A quick judgement of many ways to cut the same samples."""

from typing import Final

import numpy as np

from core.arrays import BoolArray, FloatArray
from core.families import Layout
from core.families.marginal_likelihood import log_share, quick_evidence
from core.families.statistics import Moments, outer

STRENGTHS: Final = np.array([2.0, 16.0, 128.0])


class SideEvidence:
    """The evidence of the factors, for the sides of cuts of rows (n, width), with what they expect (1, n_apart)."""

    def __init__(self, layout: Layout, rows: FloatArray, expected: FloatArray) -> None:
        self._layout, self._rows, self._expected = layout, rows, expected

    def __call__(self, side: BoolArray) -> FloatArray:
        """Of each of P sides, masks (n, P): (P,)."""
        count = side.sum(0).astype(float)
        mean = side.T @ self._rows / np.maximum(count, 1.0)[:, None]
        return self._layout.log_evidence(count, mean, np.repeat(self._expected, len(count), axis=0))


class Screen:
    """Ranks cuts of rows (n, b) by the evidence of their two sides; what is common to all cuts is left out.

    apart judges what is not in the block.
    """

    def __init__(
        self, X: FloatArray, expected: FloatArray, floor: float, apart: SideEvidence | None = None, *, diagonal: bool
    ) -> None:
        self._Z, self._apart = X - X.mean(0), apart
        self._total = outer(self._Z, True).sum(0) if diagonal else self._Z.T @ self._Z
        self._expected, self._floor, self._diagonal = expected, floor, diagonal

    def __call__(self, left: BoolArray) -> FloatArray:
        """What each of P masks (n, P) of the left side is worth, in nats but for a constant: (P,)."""
        Z, n = self._Z, left.sum(0).astype(float)
        sums, squares = left.T @ Z, self._squares(left)
        count = np.concatenate([n, len(Z) - n])
        sides = _centred(count, np.concatenate([sums, -sums]), np.concatenate([squares, self._total - squares]))
        evidence = quick_evidence(sides.count, sides.scatter, self._expected, STRENGTHS, self._floor).max(1)
        worth: FloatArray = evidence.reshape(2, -1).sum(0) + log_share(n, len(Z) - n)
        if self._apart is not None:
            worth += self._apart(left) + self._apart(~left)
        return worth

    def _squares(self, left: BoolArray) -> FloatArray:
        if self._diagonal:
            squares: FloatArray = left.T @ outer(self._Z, True)
            return squares
        return np.stack([part.T @ part for part in (self._Z[side] for side in left.T)])


def _centred(n: FloatArray, sums: FloatArray, squares: FloatArray) -> Moments:
    """Moments from sums and sums of squares about the mean of all, which is zero here."""
    mean = sums / np.maximum(n, 1.0)[:, None]
    diagonal = squares.ndim == 2
    scatter = squares - outer(mean, diagonal) * n.reshape(-1, *(1,) * (squares.ndim - 1))
    return Moments(n, mean, np.maximum(scatter, 0.0) if diagonal else scatter)
