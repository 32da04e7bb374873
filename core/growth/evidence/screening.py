"""A quick judgement of many ways to cut the same samples."""

from typing import Final

import numpy as np

from core.arrays import BoolArray, FloatArray, IntArray
from core.families import Layout
from core.families.marginal_likelihood import log_share, quick_evidence
from core.families.statistics import Moments, outer
from core.growth.evidence.search import Judge

STRENGTHS: Final = np.array([2.0, 16.0, 128.0])
"""Strengths of the prior that a quick judgement tries, in place of nine. Chosen by hand."""

MOST_DOUBTED: Final = 8
"""Chosen by hand."""


class SideEvidence:
    """The evidence of the factors for sides of cuts of rows (n, width), all of which expect the same, (1, n_apart).

    only are the features whose factors count, all if not given.
    """

    def __init__(self, layout: Layout, rows: FloatArray, expected: FloatArray, only: IntArray | None = None) -> None:
        self._layout, self._rows, self._expected, self._only = layout, rows, expected, only

    def __call__(self, side: BoolArray) -> FloatArray:
        """The evidence (P,), in nats, of each of P sides, given as masks (n, P)."""
        count = side.sum(0).astype(float)
        mean = side.T @ self._rows / np.maximum(count, 1.0)[:, None]
        return self._layout.log_evidence(count, mean, np.repeat(self._expected, len(count), axis=0), self._only)


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

    def whole(self) -> float:
        """The worth of no cut at all, up to the same constant."""
        n, total = np.array([float(len(self._Z))]), self._total[None]
        worth = float(quick_evidence(n, total, self._expected, STRENGTHS, self._floor).max())
        return worth if self._apart is None else worth + float(self._apart(np.ones((len(self._Z), 1), bool))[0])

    def _squares(self, left: BoolArray) -> FloatArray:
        if self._diagonal:
            squares: FloatArray = left.T @ outer(self._Z, True)
            return squares
        return np.stack([part.T @ part for part in (self._Z[side] for side in left.T)])


class ConditionalScreen:
    """Ranks cuts by what their sides explain beyond the context, as eq. (38) does.

    The doubt costs time, so it is asked about the MOST_DOUBTED cuts that are best without it; the others are out.
    """

    def __init__(self, everything: Screen, context: Screen, doubt: Judge) -> None:
        self._everything, self._context, self._doubt = everything, context, doubt
        self._uncut = context.whole()

    def __call__(self, left: BoolArray) -> FloatArray:
        """The worth (P,) of each of P cuts, given as masks (n, P) of their left sides: nats, up to a constant."""
        everything, context = self._everything(left), self._context(left) - self._uncut
        best = np.argsort(-(everything - np.maximum(context, 0.0)), kind="stable")[:MOST_DOUBTED]
        worth = np.full(left.shape[1], -np.inf)
        worth[best] = everything[best] - np.maximum(context[best] + self._doubt(left[:, best]), 0.0)
        return worth


def _centred(n: FloatArray, sums: FloatArray, squares: FloatArray) -> Moments:
    """The moments of samples from their sums and sums of squares; the mean of all samples is 0."""
    mean = sums / np.maximum(n, 1.0)[:, None]
    diagonal = squares.ndim == 2
    scatter = squares - outer(mean, diagonal) * n.reshape(-1, *(1,) * (squares.ndim - 1))
    return Moments(n, mean, np.maximum(scatter, 0.0) if diagonal else scatter)
