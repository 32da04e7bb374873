"""Rows of records as columns; how they were learned only of those that were not learned as they came."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from app.streams.log.blocks.container import MOST_BYTES, Columns
from app.streams.log.events import UnreadableEvent
from core import Records

Arrays = dict[str, npt.NDArray[Any]]
ALTERED: Final = ("learned", "spread")
Widths = tuple[int, int, int]
"""Features of x, bytes of left, features of learned and spread."""


def rows_to_arrays(records: Records) -> Arrays:
    """Give the columns of records, a feature a column."""
    rows = records.rows
    altered = records.altered
    arrays: Arrays = {"row.altered": altered}
    for name in rows.dtype.names or ():
        values = rows[name][altered] if name in ALTERED else rows[name]
        if name == "x":
            arrays |= {f"row.x{i}": values[:, i] for i in range(values.shape[1])}
        else:
            arrays[f"row.{name}"] = values
    return arrays


def count_rows(columns: Columns) -> int:
    """Count the rows."""
    return columns.shape("row.altered")[0]


def rows_from_arrays(columns: Columns, places: npt.NDArray[np.int64], widths: Widths) -> Records:
    """Give the rows at these places, so wide. Raises UnreadableEvent if they are not."""
    n_features, left, altered = widths
    _check_widths(columns, len(places), widths)
    records = Records.empty(len(places), n_features, 8 * left, altered=altered)
    rows = records.rows
    for name in rows.dtype.names or ():
        kind = rows.dtype[name].base
        if name == "x":
            for i in range(n_features):
                rows["x"][:, i] = columns.read(f"row.x{i}", kind, count_rows(columns))[places]
        elif name == "left":
            if left:
                rows["left"] = _wide(columns, "row.left", kind)[places, :left]
        elif name not in ALTERED:
            rows[name] = columns.read(f"row.{name}", kind, count_rows(columns))[places]
    if altered:
        _fill_altered(columns, rows, places)
    return records


def _check_widths(columns: Columns, n: int, widths: Widths) -> None:
    n_features, left, altered = widths
    fits = 0 <= left <= columns.shape("row.left")[1] and 0 <= 8 * altered <= columns.shape("row.learned")[1]
    if not (fits and n_features >= 0 and (not n_features or f"row.x{n_features - 1}" in columns)):
        raise UnreadableEvent(f"a block's rows are not as wide as {widths}")
    if n * (8 * n_features + left + 16 * altered) > MOST_BYTES:
        raise UnreadableEvent(f"a block's rows would take more than {MOST_BYTES} bytes")


def _fill_altered(columns: Columns, rows: npt.NDArray[Any], places: npt.NDArray[np.int64]) -> None:
    altered = columns.read("row.altered", np.bool_)
    chosen = altered[places]
    order = (np.cumsum(altered) - 1)[places[chosen]]
    for name in ALTERED:
        rows[name][chosen] = _wide(columns, f"row.{name}", "<f8")[order, : rows.dtype[name].shape[0]]


def _wide(columns: Columns, name: str, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Give a column whose rows hold several values, (n, k), even if k is 1."""
    values = columns.read(name, kind)
    return values if values.ndim == 2 else values[:, None]
