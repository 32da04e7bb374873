"""Mixtures in the log domain."""

from math import log

import numpy as np
from hypothesis import given

from core.mixture.log_sum import log_mixture
from tests.core.mixture.trees import DENSITIES


@given(DENSITIES)
def test_log_mixture_lies_between_its_parts(log_density):
    """Log-sum-exp of all minus infinities gave NaN, and without the shift a tight cluster overflowed."""
    log_p = log_mixture(log_density, np.array([0.5, 0.3, 0.2]))
    assert np.isfinite(log_p).all()
    assert (log_p <= log_density.max(1) + 1e-12).all()
    assert (log_p >= log_density.max(1) + log(0.2) - 1e-9 * np.abs(log_density.max(1))).all()
