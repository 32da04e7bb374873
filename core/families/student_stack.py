"""StudentNodes of many models, stacked: each scores a sample of its own, and numpy is called once for all of them."""

from functools import cache
from itertools import accumulate, pairwise

import numpy as np

from core.arrays import BLOCK_ROWS, BoolArray, FloatArray, upper_triangle


def row_width(n_nodes: int, n_features: int) -> int:
    """How many numbers StudentNodes.row gives."""
    return _edges(n_nodes, n_features)[-1]


@cache
def _edges(n_nodes: int, n_features: int) -> tuple[int, ...]:
    """Where in a row coefficients, centre, freedom, exponents, peak, nearness and edge begin and end."""
    coefficients = (n_features * (n_features + 1) // 2 + n_features + 1) * (n_nodes + 1)
    return tuple(accumulate((0, coefficients, n_features, n_nodes, n_nodes, n_nodes, 1, 1)))


class StudentStack:
    """S models of N nodes over m features, as rows (S, width) of StudentNodes.row."""

    def __init__(self, rows: FloatArray, n_nodes: int, n_features: int) -> None:
        coefficients, *others = (rows[:, begin:end] for begin, end in pairwise(_edges(n_nodes, n_features)))
        self._coefficients = coefficients.reshape(len(rows), -1, n_nodes + 1)
        self._center, self._freedom, self._exponents, self._peak, self._near, self._edge = others

    def log_density(self, X: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Log densities (S, N) of samples (S, m), and which samples (S,) they hold for, to the last bit.

        Not for those so far out that they are whitened, or drawn in.
        """
        i, j = upper_triangle(X.shape[1])
        Y = X - self._center
        # whole blocks of rows, as product_by_blocks takes them: a product rounds by its shape
        terms = np.zeros((len(X), BLOCK_ROWS, self._coefficients.shape[1]))
        first = terms[:, 0]
        np.multiply(Y.take(i, 1), Y.take(j, 1), out=first[:, : len(i)])
        first[:, len(i) : -1], first[:, -1] = Y, 1.0
        sums = np.matmul(terms, self._coefficients)[:, 0]
        is_near = sums[:, -1] <= self._near[:, 0]
        sums[~is_near] = 0.0  # so far out they may round to squares below zero
        kernel: FloatArray = sums[:, :-1] / self._freedom
        kernel += 1.0
        np.log(kernel, out=kernel)
        kernel *= self._exponents
        kernel += self._peak
        return kernel, is_near & (kernel[:, 0] >= self._edge[:, 0])
