"""Array types, and the two shapes of array that the whole of core relies on: growing ones and blocks of rows."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

BLOCK_ROWS = 16
"""Rows of every matrix product that touches samples. A BLAS product rounds by its shape, so one row alone and the same
row among a thousand would differ in their last bits; products of one fixed shape do not."""


def grown(array: NDArray[Any], capacity: int) -> NDArray[Any]:
    """The array with its first axis extended by zeros to capacity."""
    wide = np.zeros((capacity, *array.shape[1:]), array.dtype)
    wide[: len(array)] = array
    return wide


def sum_of_others(terms: FloatArray) -> FloatArray:
    """Sums along the last axis, each without its own term; nothing is subtracted, so a huge term leaves no trace.

    >>> sum_of_others(np.array([1e30, 2.0, 3.0]))
    array([5.e+00, 1.e+30, 1.e+30])
    """
    sums = np.zeros_like(terms)
    np.cumsum(terms[..., :-1], -1, out=sums[..., 1:])
    sums[..., :-1] += np.cumsum(terms[..., :0:-1], -1)[..., ::-1]
    return sums


def packed(matrices: FloatArray) -> FloatArray:
    """Symmetric matrices (k, m, m) as rows (k, m (m + 1) / 2); rows (k, m), of diagonal ones, as they are."""
    if matrices.ndim == 2:
        return matrices
    i, j = upper_triangle(matrices.shape[1])
    return matrices[:, i, j]


@cache
def upper_triangle(m: int) -> tuple[IntArray, IntArray]:
    """Rows and columns of the upper triangle of a matrix (m, m)."""
    return np.triu_indices(m)


def packed_width(m: int, diagonal: bool) -> int:
    """How long the rows are that packed makes of matrices (k, m, m), or of diagonals (k, m)."""
    return m if diagonal else m * (m + 1) // 2


def variances(rows: FloatArray, m: int) -> FloatArray:
    """The diagonals (k, m) of matrices as packed gives them."""
    if rows.shape[1] == m:
        return rows
    i, j = upper_triangle(m)
    return rows[:, i == j]


def unpacked(rows: FloatArray, like: FloatArray) -> FloatArray:
    """What packed was given, an array of like's shape but for its length."""
    if like.ndim == 2:
        return rows
    m = like.shape[1]
    i, j = upper_triangle(m)
    matrices = np.empty((len(rows), m, m))
    matrices[:, i, j] = matrices[:, j, i] = rows
    return matrices


def padded(n: int) -> int:
    """How many rows n rows take in whole blocks."""
    return -(-n // BLOCK_ROWS) * BLOCK_ROWS


def product_by_blocks(X: FloatArray, columns: FloatArray) -> FloatArray:
    """X (n, m) times columns (m, k), in fixed blocks of rows: each row's result is independent of its company."""
    n, m = X.shape
    rows = X
    if n % BLOCK_ROWS:
        rows = np.zeros((padded(n), m))
        rows[:n] = X
    product = np.matmul(rows.reshape(len(rows) // BLOCK_ROWS, BLOCK_ROWS, m), columns)
    result: FloatArray = product.reshape(len(rows), columns.shape[1])[:n]
    return result
