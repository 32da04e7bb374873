"""Records as bytes.

Bytes: MAGIC, a version and three widths (the features of x, the bytes of left, the features of learned and of spread),
2 bytes each, little-endian; then the rows; then 8 bytes of BLAKE2b over everything before. Several rows with learned
and spread are SPARSE: first how many rows there are, in 4 bytes; the rows without learned and spread; then these of the
altered rows, each after the place of its row, in 4 bytes.
"""

from functools import cache
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidSnapshot
from core.records.layout import blank_row, check_rows, copy_rows, is_altered, row_type
from core.snapshot import DIGEST_BYTES, digest

MAGIC: Final = b"ITANrows"
OLDEST: Final = 2
"""A version that is read too: it knew of no incidents, but of a second model of labelled normals."""
DENSE: Final = 3
"""Whole rows; earlier builds wrote several with learned and spread in this way, too."""
SPARSE: Final = 4
_HEADER: Final = Struct("<8sHHHH")
_COUNT: Final = Struct("<I")
MOST_GROWTH: Final = 16
"""By how much rows may grow when they are read: learned and spread are hardly wider than x."""


class Shape(NamedTuple):
    """How many rows there are, and how many features, bytes of left, and features of learned and spread each has."""

    n: int
    n_features: int
    side_bytes: int
    altered: int


def pack(rows: NDArray[Any]) -> bytes:
    """Header, rows and checksum."""
    kind, n = rows.dtype, len(rows)
    widths = kind["x"].shape[0], kind["left"].shape[0], kind["learned"].shape[0]
    version = _version_of(n, widths[-1])
    body = _HEADER.pack(MAGIC, version, *widths) + (_sparse(rows) if version == SPARSE else rows.tobytes())
    return body + digest(body)


def _version_of(n: int, altered: int) -> int:
    return SPARSE if altered and n > 1 else DENSE


def _sparse(rows: NDArray[Any]) -> bytes:
    """Rows with learned and spread only where they say something."""
    places = np.flatnonzero(is_altered(rows)).astype("<u4")
    cells, plain = _cells(rows.tobytes(), rows.dtype), _plain_size(rows.dtype)
    altered = np.hstack([places.view(np.uint8).reshape(-1, places.itemsize), cells[places, plain:]])
    return _COUNT.pack(len(rows)) + cells[:, :plain].tobytes() + altered.tobytes()


def _dense(kind: np.dtype[Any], body: bytes) -> bytes:
    """What _sparse was given, as bytes. Raises InvalidSnapshot for anything else."""
    plain, size = _plain_size(kind), kind.itemsize
    n = _COUNT.unpack_from(body)[0] if len(body) >= _COUNT.size else 0
    end, one = _COUNT.size + n * plain, _COUNT.size + size - plain
    if end > len(body) or (len(body) - end) % one or n * size > MOST_GROWTH * len(body):
        raise InvalidSnapshot("its rows do not fit their layout")
    cells = _cells(blank_row(kind).tobytes(), kind).repeat(n, 0)
    cells[:, :plain] = np.frombuffer(body, np.uint8, n * plain, _COUNT.size).reshape(n, plain)
    altered = np.frombuffer(body, np.uint8, offset=end).reshape(-1, one)
    places = altered[:, : _COUNT.size].copy().view("<u4")[:, 0].astype(np.int64)
    if len(places) and (places[-1] >= n or (np.diff(places) <= 0).any()):
        raise InvalidSnapshot("its altered rows are not in order")
    cells[places, plain:] = altered[:, _COUNT.size :]
    return cells.tobytes()


def _cells(body: bytes, kind: np.dtype[Any]) -> NDArray[np.uint8]:
    """Rows as bytes (n, row)."""
    return np.frombuffer(body, np.uint8).reshape(-1, kind.itemsize)


def _plain_size(kind: np.dtype[Any]) -> int:
    """How many bytes of a row come before learned and spread."""
    assert kind.fields is not None
    return kind.fields["learned"][1]


def shape_of(blob: bytes) -> Shape | None:
    """The shape of rows by the bytes that pack made of them; None if an earlier build did, or for anything else."""
    try:
        version, widths, body = _opened(blob)
    except InvalidSnapshot:
        return None
    size = len(body) - _HEADER.size
    if version == SPARSE:
        n = _COUNT.unpack_from(body, _HEADER.size)[0] if size >= _COUNT.size else 0
    else:
        n = size // row_type(*widths).itemsize
    return Shape(n, *widths) if version == _version_of(n, widths[-1]) else None


def unpack(blob: bytes) -> tuple[np.dtype[Any], bytes]:
    """The type of the rows and their bytes, dense. Raises InvalidSnapshot for bytes that pack did not write."""
    version, widths, body = _opened(blob)
    kind = _oldest_row_type(*widths) if version == OLDEST else row_type(*widths)
    if version == SPARSE:
        return kind, _dense(kind, body[_HEADER.size :])
    if (len(body) - _HEADER.size) % kind.itemsize:
        raise InvalidSnapshot("its rows do not fit their layout")
    return kind, body[_HEADER.size :]


def _opened(blob: bytes) -> tuple[int, list[int], bytes]:
    """Version, widths, and all but the checksum."""
    if not blob.startswith(MAGIC) or len(blob) < _HEADER.size + DIGEST_BYTES:
        raise InvalidSnapshot("it does not begin with the mark of records")
    body, checksum = blob[:-DIGEST_BYTES], blob[-DIGEST_BYTES:]
    if digest(body) != checksum:
        raise InvalidSnapshot("its checksum does not match: it is damaged or cut short")
    _, version, *widths = _HEADER.unpack_from(body)
    if version not in (OLDEST, DENSE, SPARSE):
        raise InvalidSnapshot(f"its version is {version}; this program reads versions {OLDEST}, {DENSE} and {SPARSE}")
    return version, widths, body


@cache
def _oldest_row_type(n_features: int, side_bytes: int, altered: int) -> np.dtype[Any]:
    kind = row_type(n_features, side_bytes, altered)
    new = ("severity", "incident", "event", "ordinary")
    fields: list[tuple[str, Any]] = [(name, kind[name]) for name in kind.names or () if name not in new]
    places = [name for name, _ in fields]
    fields.insert(places.index("ordinal"), ("gain", "<f8"))
    fields.insert(places.index("time") + 1, ("normal_ordinal", "<i8"))
    return np.dtype(fields)


def read_rows(kind: np.dtype[Any], body: bytes) -> NDArray[Any]:
    """Rows (n,) of unpacked bytes. Raises InvalidSnapshot if check_rows does."""
    rows = np.frombuffer(body, kind).copy()
    if "incident" not in (kind.names or ()):
        rows = _upgraded(rows)
    check_rows(rows)
    return rows


def _upgraded(older: NDArray[Any]) -> NDArray[Any]:
    """Rows of the oldest version as those of the present one: in no incident, and of unknown severity."""
    rows = blank_row(row_type(*(older.dtype[name].shape[0] for name in ("x", "left", "learned")))).repeat(len(older))
    copy_rows(older, rows)
    return rows
