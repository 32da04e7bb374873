"""Mixtures in the log domain."""

from typing import Final

import numpy as np

from core.arrays import FloatArray

LEAST_WEIGHT: Final = 1e-300
"""A weight below counts as this one: its logarithm is finite, and it may still grow."""


def log_mixture(log_density: FloatArray, weights: FloatArray) -> FloatArray:
    """Log densities (n,) of the mixture, eq. (10), from the nodes' log densities (n, N) and the weights (N,).

    >>> log_mixture(np.array([[-1e5, -1e5]]), np.array([0.5, 0.5]))
    array([-100000.])
    """
    return log_sum_exp(log_density + np.log(np.maximum(weights, LEAST_WEIGHT)))


def log_sum_exp(terms: FloatArray) -> FloatArray:
    """The log of the sum of exponentials of each row: (n,) of (n, N). Overflows for no finite terms."""
    top: FloatArray = np.maximum.reduce(terms, axis=1)
    terms = terms - top[:, None]
    np.exp(terms, out=terms)
    top += np.log(np.add.reduce(terms, axis=1))
    return top
