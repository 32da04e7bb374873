"""A quick judgement of many ways to cut the same samples."""

from typing import Final

import numpy as np

from core.arrays import BoolArray, FloatArray
from core.families import Layout
from core.families.marginal_likelihood import log_share, quick_evidence
from core.families.statistics import Moments, outer

STRENGTHS: Final = np.array([2.0, 16.0, 128.0])
"""Strengths of the prior that a quick judgement tries, in place of nine. Chosen by hand."""


class SideEvidence:
    """The evidence of the factors for sides of cuts of rows (n, width), all of which expect the same, (1, n_apart)."""

    def __init__(self, layout: Layout, rows: FloatArray, expected: FloatArray) -> None:
        self._layout, self._rows, self._expected = layout, rows, expected

    def __call__(self, side: BoolArray) -> FloatArray:
        """The evidence (P,), in nats, of each of P sides, given as masks (n, P)."""
        count = side.sum(0).astype(float)
        mean = side.T @ self._rows / np.maximum(count, 1.0)[:, None]
        return self._layout.log_evidence(count, mean, np.repeat(self._expected, len(count), axis=0))


class Screen:
    """Ranks cuts of rows (n, b) by the evidence of their two sides, without what is the same for all cuts.

    The sides expect variances (b,), of floor (b,) at least. apart judges the factors.
    """

    def __init__(
        self,
        X: FloatArray,
        expected: FloatArray,
        floor: FloatArray,
        apart: SideEvidence | None = None,
        *,
        diagonal: bool,
    ) -> None:
        self._Z, self._apart = X - X.mean(0), apart
        self._total = outer(self._Z, True).sum(0) if diagonal else self._Z.T @ self._Z
        self._expected, self._floor, self._diagonal = expected, floor, diagonal

    def __call__(self, left: BoolArray) -> FloatArray:
        """The worth (P,) of each of P cuts, given as masks (n, P) of their left sides: nats, up to a constant."""
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
    """The moments of samples from their sums and sums of squares; the mean of all samples is 0."""
    mean = sums / np.maximum(n, 1.0)[:, None]
    diagonal = squares.ndim == 2
    scatter = squares - outer(mean, diagonal) * n.reshape(-1, *(1,) * (squares.ndim - 1))
    return Moments(n, mean, np.maximum(scatter, 0.0) if diagonal else scatter)
