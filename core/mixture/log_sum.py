"""Mixtures in the log domain."""

from typing import Final

import numpy as np

from core.arrays import FloatArray

LEAST_WEIGHT: Final = 1e-300


def log_mixture(log_density: FloatArray, weights: FloatArray) -> FloatArray:
    """log sum_i alpha_i f_i, (n,), from the nodes' log densities (n, N).

    >>> log_mixture(np.array([[-1e5, -1e5]]), np.array([0.5, 0.5]))
    array([-100000.])
    """
    return log_sum_exp(log_density + np.log(np.maximum(weights, LEAST_WEIGHT)))


def log_sum_exp(terms: FloatArray) -> FloatArray:
    """log of the sum of exponentials along the rows of (n, N): (n,)."""
    top: FloatArray = np.maximum.reduce(terms, axis=1)
    terms = terms - top[:, None]
    np.exp(terms, out=terms)
    top += np.log(np.add.reduce(terms, axis=1))
    return top
