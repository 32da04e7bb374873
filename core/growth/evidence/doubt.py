"""How unsure the context leaves on which side of a cut samples fall."""

from typing import Final

import numpy as np
from scipy.special import gammaln

from core.arrays import BoolArray, FloatArray, IntArray
from core.families.cholesky import factor
from core.families.marginal_likelihood import MEAN_COUNT, own_scale
from core.mixture.nodes import Nodes

STRENGTH: Final = 2.0
"""Pseudo-samples of each side's prior scale. Chosen by hand."""
_SAME: Final = 1e-12
"""The least that is left of a side's volume without one of its samples."""


class Doubt:
    """Judges cuts of a leaf's samples (n, m), with the variance of filled values (n, m).

    The evidence of two sides takes for granted on which one a sample falls. The mixture must tell it: for values given
    the context by the context alone. So a cut that follows the values would look better than it is: the sum in
    eq. (38). Both sides expect variances (b,) of the block.
    """

    def __init__(self, nodes: Nodes, leaf: IntArray, x: FloatArray, spread: FloatArray, expected: FloatArray) -> None:
        self._layout, self._context, self._block_context = nodes.layout, nodes.context, nodes.block_context
        self._floor, self._diagonal, self._expected = nodes.prior.floor, nodes.statistics.diagonal, expected
        self._x, self._apart = x, nodes.known_apart(leaf)
        self._columns, _ = nodes.layout.columns(x, spread)

    def __call__(self, left: BoolArray) -> FloatArray:
        """The sum (P,) of log P(side | sample) - log P(side | context), in nats, for left sides by masks (n, P)."""
        everything = np.arange(len(self._expected)), np.arange(self._layout.n_features)
        return self._about(left, self._block_context, self._context) - self._about(left, *everything)

    def _about(self, left: BoolArray, block: IntArray, features: IntArray) -> FloatArray:
        """The sum (P,) of -log P(side | features), by the sides' predictives, each without the sample itself.

        The features are those of these places in the block, and the factors of these features.
        """
        sides = np.concatenate([left, ~left], 1)
        count = sides.sum(0).astype(float)
        terms = np.log(np.maximum(count, 1.0)) + self._of_factors(sides, count, features)
        for part in block[:, None] if self._diagonal else [block] * bool(len(block)):
            terms += self._of_block(sides, count, part)
        odds = np.subtract(*np.split(terms, 2, axis=1))
        doubt: FloatArray = np.logaddexp(0.0, np.where(left, -odds, odds)).sum(0)
        return doubt

    def _of_block(self, sides: BoolArray, count: FloatArray, part: IntArray) -> FloatArray:
        """Log densities (n, 2 P) of a part (c,) of the block, up to a constant, by a Student t a side, eq. (6)."""
        C, c = self._columns[:, part], len(part)
        off = C.T - (sides.T @ C / np.maximum(count, 1.0)[:, None])[:, :, None]
        scatter = np.matmul(off * sides.T[:, None, :], off.transpose(0, 2, 1))
        scale = own_scale(count, scatter, self._expected[part], self._floor[part])
        factors, deviations = factor(scatter + STRENGTH * scale[:, :, None] * np.eye(c))
        squared = (np.matmul(np.linalg.inv(factors), off / deviations[:, :, None]) ** 2).sum(1).T
        log_volume = np.log(np.einsum("pii->pi", factors)).sum(1) + np.log(deviations).sum(1)
        k, freedom = count + MEAN_COUNT, count + STRENGTH
        without = np.maximum(k - 1, MEAN_COUNT)
        others = _log_peak(freedom, k, c) - 0.5 * (freedom + c) * np.log1p(squared * (k / (k + 1)))
        # one of their own: by the matrix determinant lemma what is left of the volume is 1 - squared k / (k - 1)
        left_over = np.log(np.maximum(1 - squared * (k / without), _SAME))
        own = _log_peak(freedom - 1, without, c) + 0.5 * (freedom + c - 2) * left_over
        log_density: FloatArray = np.where(sides, own, others) - log_volume
        return log_density

    def _of_factors(self, sides: BoolArray, count: FloatArray, features: IntArray) -> FloatArray:
        """Log densities (n, 2 P) of the factors of these features, with the sample itself: it hardly tells there."""
        layout, total = self._layout, np.zeros(sides.shape)
        after_block = (sides.T @ self._columns / np.maximum(count, 1.0)[:, None])[:, len(layout.block) :]
        for feature, one, span in zip(layout.apart, layout.factors, layout.spans, strict=True):
            if feature in features:
                expected = np.repeat(self._apart[:, span], len(count), axis=0)
                predictive = one.predictive(*one.posterior(count, after_block[:, span], expected))
                total += predictive.log_density(self._x[:, feature].copy())
        return total


def _log_peak(freedom: FloatArray, count: FloatArray, c: int) -> FloatArray:
    """What a Student t over c columns has at its centre, up to a constant, but for its volume."""
    peak: FloatArray = gammaln((freedom + c) / 2) - gammaln(freedom / 2) - 0.5 * c * np.log1p(1 / count)
    return peak
