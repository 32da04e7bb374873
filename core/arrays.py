"""Array types, and the two shapes of array that the whole of core relies on: growing ones and blocks of rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
ByteArray = NDArray[np.uint8]

BLOCK_ROWS = 16
"""Rows of every matrix product that touches samples. A BLAS product rounds by its shape, so one row alone and the same
row among a thousand would differ in their last bits; products of one fixed shape do not."""


def grown(array: NDArray[Any], capacity: int) -> NDArray[Any]:
    """The array with its first axis extended by zeros to capacity."""
    wide = np.zeros((capacity, *array.shape[1:]), array.dtype)
    wide[: len(array)] = array
    return wide


def product_by_blocks(X: FloatArray, columns: FloatArray) -> FloatArray:
    """X (n, m) times columns (m, k), in fixed blocks of rows: each row's result is independent of its company."""
    n, m = X.shape
    blocks = -(-n // BLOCK_ROWS)
    padded = np.zeros((blocks * BLOCK_ROWS, m))
    padded[:n] = X
    product = np.matmul(padded.reshape(blocks, BLOCK_ROWS, m), columns)
    result: FloatArray = product.reshape(blocks * BLOCK_ROWS, columns.shape[1])[:n]
    return result
