"""Records as bytes: the fields of a row, the header before the rows, and the values that they can hold.

Bytes: MAGIC, VERSION and three widths (the features of x, the bytes of left, the features of learned and of spread), 2
bytes each, little-endian; then the rows; then 8 bytes of BLAKE2b over everything before.
"""

from functools import cache
from struct import Struct
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.decision.incidents import INCIDENT_EVENTS
from core.errors import InvalidSnapshot
from core.snapshot import DIGEST_BYTES, digest

MAGIC: Final = b"ITANrows"
VERSION: Final = 3
OLDER: Final = 2
"""The version that is read too: it knew of no incidents, and of a second model of labelled normals."""
_HEADER: Final = Struct("<8sHHHH")
NOT_LEARNED: Final = 0
LEARNED: Final = 1
RETRACTED: Final = 2
HELD_OUT: Final = 3
"""Values of status; earlier versions refuse records of held-out samples."""


@cache
def row_type(n_features: int, side_bytes: int, altered: int) -> np.dtype[Any]:
    """One record: the sample, its score and decision, its label, and how it was learned.

    ordinary says whether the sample counts as ordinary. level is the level that the decision rule measured the score
    from. ordinal counts it among the learned samples. left has one bit a node, for trees that grow by 2-means. learned
    and spread (as wide as the model has columns, or 0) hold what entered the statistics if that is not the scaled
    sample itself; otherwise learned is NaN.
    """
    return np.dtype(
        [
            ("seq", "<i8"),
            ("x", "<f8", (n_features,)),
            ("score", "<f8"),
            ("threshold", "<f8"),
            ("severity", "<f8"),
            ("incident", "<i8"),
            ("event", "i1"),
            ("is_anomaly", "?"),
            ("ordinary", "?"),
            ("ready", "?"),
            ("label", "i1"),
            ("status", "i1"),
            ("level", "<f8"),
            ("ordinal", "<i8"),
            ("time", "<f8"),
            ("left", "u1", (side_bytes,)),
            ("learned", "<f8", (altered,)),
            ("spread", "<f8", (altered,)),
        ]
    )


@cache
def blank_row(kind: np.dtype[Any]) -> NDArray[Any]:
    """A row (1,) that says nothing yet."""
    row = np.zeros(1, kind)
    for name in ("score", "threshold", "severity", "learned", "time"):
        row[name] = np.nan
    row["ordinary"] = True
    return row


def copy_rows(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Overwrite rows (n,) by others (n,), which may be narrower, or older: what is not known any more is left out."""
    known = target.dtype.names or ()
    for name in source.dtype.names or ():
        if name not in known:
            continue
        if source[name].ndim == 1:
            target[name] = source[name]
        else:
            target[name][:, : source[name].shape[1]] = source[name]


def pack(rows: NDArray[Any]) -> bytes:
    """Header, rows and checksum."""
    widths = (rows.dtype[name].shape[0] for name in ("x", "left", "learned"))
    body = _HEADER.pack(MAGIC, VERSION, *widths) + rows.tobytes()
    return body + digest(body)


def unpack(blob: bytes) -> tuple[np.dtype[Any], bytes]:
    """The type of the rows and their bytes. Raises InvalidSnapshot for bytes that pack did not write."""
    if not blob.startswith(MAGIC) or len(blob) < _HEADER.size + DIGEST_BYTES:
        raise InvalidSnapshot("it does not begin with the mark of records")
    body, checksum = blob[:-DIGEST_BYTES], blob[-DIGEST_BYTES:]
    if digest(body) != checksum:
        raise InvalidSnapshot("its checksum does not match: it is damaged or cut short")
    _, version, *widths = _HEADER.unpack_from(body)
    if version not in (OLDER, VERSION):
        raise InvalidSnapshot(f"its version is {version}; this program reads versions {OLDER} and {VERSION}")
    kind = row_type(*widths) if version == VERSION else _older_row_type(*widths)
    if (len(body) - _HEADER.size) % kind.itemsize:
        raise InvalidSnapshot("its rows do not fit their layout")
    return kind, body[_HEADER.size :]


@cache
def _older_row_type(n_features: int, side_bytes: int, altered: int) -> np.dtype[Any]:
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
    """Rows of the older version as those of the present one: in no incident, and of unknown severity."""
    rows = blank_row(row_type(*(older.dtype[name].shape[0] for name in ("x", "left", "learned")))).repeat(len(older))
    copy_rows(older, rows)
    return rows


def check_rows(rows: NDArray[Any]) -> None:
    """Raise InvalidSnapshot for values that no detector writes."""
    codes = [
        (rows["label"] >= -1) & (rows["label"] <= 1),
        (rows["status"] >= NOT_LEARNED) & (rows["status"] <= HELD_OUT),
        (rows["event"] >= 0) & (rows["event"] < len(INCIDENT_EVENTS)),
        (rows["incident"] >= 0) & (rows["incident"] <= rows["seq"]),
    ]
    flags = [rows[name].view(np.uint8) <= 1 for name in ("is_anomaly", "ordinary", "ready")]
    numbers = [
        ~np.isinf(rows[name]) for name in ("x", "score", "threshold", "severity", "level", "time", "learned", "spread")
    ]
    numbers.append(~np.isnan(rows["level"]))
    if not all(fits.all() for fits in (*codes, *flags, *numbers)):
        raise InvalidSnapshot("its rows hold a value that no detector writes")
