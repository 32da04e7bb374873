"""Samples with missing features: their expected log densities, and what fills the gaps when they are learned."""

from math import isnan

import numpy as np

from core.arrays import BoolArray, FloatArray
from core.families.base import NodeDensities
from core.mixture import Mixture
from core.scaling import LIMIT


def impute(Z: FloatArray, densities: NodeDensities, mixture: Mixture) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Score samples (n, m) with missing features (NaN) by eq. (22), and fill their gaps for learning.

    Returns the expected log densities (n, N), the filled samples (n, m), and the variance of each filled value (n, m),
    0 for values that were there. If nothing is missing the second array is Z itself. The paper has no missing values.
    """
    if not isnan(np.vdot(Z, Z)):  # one missing feature is enough to make it so
        return densities.log_density(Z), Z, np.zeros(Z.shape)
    missing = np.isnan(Z)
    incomplete = missing.any(1)
    log_density = np.empty((len(Z), len(mixture.weights)))
    log_density[~incomplete] = densities.log_density(Z[~incomplete])
    filled, spread = Z.copy(), np.zeros_like(Z)
    for pattern in np.unique(missing[incomplete], axis=0):
        rows = np.flatnonzero((missing == pattern).all(1))
        gaps = np.ix_(rows, pattern)
        log_density[rows], filled[gaps], spread[gaps] = _fill(Z[rows], pattern, densities, mixture)
    return log_density, filled, spread


def _fill(
    Z: FloatArray, pattern: BoolArray, densities: NodeDensities, mixture: Mixture
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Expected log densities (n, N); the mean and variance (n, k) of the k missing features given the rest."""
    given = densities.conditional(Z, pattern)
    log_p = mixture.log_p(given.known)
    share = np.exp(given.known + mixture.log_weights - log_p[:, None])[:, :, None]
    # a line through nodes leads on from a huge value to a huger one: no further than a sample itself may lie
    expected = np.clip(given.mean, -LIMIT, LIMIT)
    mean = (share * expected).sum(1)
    variance = (share * (given.variance + (expected - mean[:, None]) ** 2)).sum(1)
    return given.log_density, mean, variance
