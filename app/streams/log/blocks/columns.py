"""Columns as few bytes: what repeats, or rises evenly, costs nothing; the rest is compressed in the best of some forms.

Whatever the type of a column, it comes back bit for bit.
"""

import sys
from collections.abc import Sequence
from enum import IntEnum
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from app.streams.log.blocks.decimals import MOST_PLACES, from_whole, to_whole

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LEVEL: Final = 1
"""Higher levels gain less than 1 % on values and take several times as long."""
TRIED_ROWS: Final = 4096
"""The form is chosen by so many rows."""
WINDOW: Final = {int(zstd.DecompressionParameter.window_log_max): 23}

Cells = npt.NDArray[np.uint8]


class Form(IntEnum):
    """How a column is written: rows, or each of their bytes by itself (planes), of values or of steps between them."""

    CONSTANT = 0
    EVEN = 1
    ROWS = 2
    PLANES = 3
    STEP_ROWS = 4
    STEP_PLANES = 5
    DECIMAL = 6


STEPS: Final = (Form.STEP_ROWS, Form.STEP_PLANES)
PLANES: Final = (Form.PLANES, Form.STEP_PLANES)


class Column(NamedTuple):
    """A column of n rows, each of `width` bytes, as `data` of a form."""

    form: int
    n: int
    width: int
    data: bytes


def encode(values: npt.NDArray[Any]) -> Column:
    """Write a column (n,) or (n, k) in the form that takes least."""
    n, width = len(values), values.itemsize * prod(values.shape[1:])
    cells = np.frombuffer(values.tobytes(), np.uint8).reshape(n, width)
    if not cells.size or (cells == cells[0]).all():
        return Column(Form.CONSTANT, n, width, cells[:1].tobytes())
    if width != np.int64().itemsize:
        return _compress(cells, (Form.ROWS, Form.PLANES) if width > 1 else (Form.ROWS,))
    steps = _steps(cells)
    if (steps[1:] == steps[1]).all():
        return Column(Form.EVEN, n, width, steps[:2].tobytes())
    found = [_compress(cells, (Form.ROWS, Form.PLANES, *STEPS))]
    if values.dtype == np.float64 and (decimals := to_whole(cells.view("<f8")[:, 0])) is not None:
        places, whole = decimals
        inner = encode(whole)
        found.append(Column(Form.DECIMAL, n, width, bytes([places, inner.form]) + inner.data))
    return min(found, key=lambda column: len(column.data))


def _compress(cells: Cells, forms: Sequence[Form]) -> Column:
    """Compress by the best of some forms."""
    best = min(forms, key=lambda form: len(_compressed(cells[:TRIED_ROWS], form)))
    return Column(best, len(cells), cells.shape[1], _compressed(cells, best))


def decode(column: Column) -> Cells:
    """Give the rows (n, width) of a column as bytes, not to be written. Raises ValueError for other bytes."""
    form, n, width = Form(column.form), column.n, column.width
    if form is Form.CONSTANT:
        return np.broadcast_to(np.frombuffer(column.data, np.uint8).reshape(min(n, 1), width), (n, width))
    if form is Form.EVEN:
        first, step = np.frombuffer(column.data, "<i8")
        return _cells(first + step * np.arange(n))
    if form is Form.DECIMAL:
        return _decode_decimal(column)
    plain = np.frombuffer(decompressed(column.data, n * width), np.uint8)
    cells = np.ascontiguousarray(plain.reshape(width, n).T) if form in PLANES else plain.reshape(n, width)
    return _cells(np.cumsum(cells.view("<i8")[:, 0])) if form in STEPS else cells


def _decode_decimal(column: Column) -> Cells:
    if len(column.data) < 2 or column.data[0] > MOST_PLACES or column.data[1] == Form.DECIMAL:
        raise ValueError("a column of decimal fractions does not say how long they are")
    whole = decode(Column(column.data[1], column.n, column.width, column.data[2:])).view("<i8")[:, 0]
    return _cells(from_whole(column.data[0], whole))


def _steps(cells: Cells) -> npt.NDArray[np.int64]:
    """Give the first value and what comes on top of each; both ways it wraps round."""
    return np.diff(cells.view("<i8")[:, 0], prepend=0)


def _cells(values: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> Cells:
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)


def compressed(data: bytes) -> bytes:
    """Compress."""
    return zstd.compress(data, LEVEL)


def _compressed(cells: Cells, form: Form) -> bytes:
    if form in STEPS:
        cells = _cells(_steps(cells))
    if form not in PLANES:
        return compressed(cells.tobytes())
    # a block of its own for each, so that bytes that are noise do not spoil the code of those that are not
    compressor = zstd.ZstdCompressor(LEVEL)
    planes = [compressor.compress(plane.tobytes(), compressor.FLUSH_BLOCK) for plane in cells.T]
    return b"".join([*planes, compressor.flush()])


def decompressed(data: bytes, size: int) -> bytes:
    """Decompress to a size that is known, and never to more. Raises ValueError."""
    decompressor = zstd.ZstdDecompressor(options=WINDOW)
    try:
        plain = decompressor.decompress(data, size)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error
    if len(plain) != size or not decompressor.eof or decompressor.unused_data:
        raise ValueError("a column is not as long as it says")
    return plain
