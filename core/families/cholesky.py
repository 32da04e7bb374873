"""A Cholesky factor that always exists."""

from typing import Final

import numpy as np

from core.arrays import FloatArray

_SHRINKAGE: Final = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)
"""Steps towards the identity, from rounding up; the least that helps is taken."""


def factor(covariances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lower Cholesky factors of the correlations of (N, m, m) covariances, and the deviations (N, m).

    Diagonals must be positive. Correlations are factored, so scales of 1e-12 and 1e12 side by side do no harm. Those
    that cannot be (perfectly dependent features, outliers of 1e15) are shrunk to the identity by the least step that
    helps; the last step is the identity itself, so this cannot fail.
    """
    deviations = np.sqrt(np.einsum("nii->ni", covariances))
    correlations = covariances / deviations[:, :, None] / deviations[:, None, :]
    try:
        return np.linalg.cholesky(correlations), deviations
    except np.linalg.LinAlgError:
        return np.stack([_factor_one(c) for c in correlations]), deviations


def _factor_one(correlation: FloatArray) -> FloatArray:
    identity = np.eye(len(correlation))
    for shrinkage in (0.0, *_SHRINKAGE):
        try:
            lower = np.linalg.cholesky((1 - shrinkage) * correlation + shrinkage * identity)
            return lower.astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            continue
    return identity
