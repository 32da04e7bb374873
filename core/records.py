"""Records: what a label that comes hours later needs to know of its sample."""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from struct import Struct
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray
from core.density.round import Batch
from core.errors import InvalidSnapshot
from core.mixture.learned import LearnedSample
from core.snapshot import DIGEST_BYTES, digest

MAGIC: Final = b"ITANrows"
VERSION: Final = 2
_HEADER: Final = Struct("<8sHHHH")
NOT_LEARNED: Final = 0
LEARNED: Final = 1
RETRACTED: Final = 2


@cache
def row_type(n_features: int, side_bytes: int, altered: int) -> np.dtype[Any]:
    """One record: the sample, what was said of it, its label, and how it was learned.

    level is what the threshold measured the score from, gain by how much the second model ranked it higher; ordinal and
    normal_ordinal are its numbers among the learned and among the labelled normals; left are bits, one a node, of trees
    that grow by 2-means; learned and spread (altered features wide, or 0 wide) are what entered the statistics where
    that is not the scaled sample itself, NaN where it is.
    """
    return np.dtype(
        [
            ("seq", "<i8"),
            ("x", "<f8", (n_features,)),
            ("score", "<f8"),
            ("threshold", "<f8"),
            ("is_anomaly", "?"),
            ("ready", "?"),
            ("label", "i1"),
            ("status", "i1"),
            ("level", "<f8"),
            ("gain", "<f8"),
            ("ordinal", "<i8"),
            ("normal_ordinal", "<i8"),
            ("time", "<f8"),
            ("left", "u1", (side_bytes,)),
            ("learned", "<f8", (altered,)),
            ("spread", "<f8", (altered,)),
        ]
    )


@cache
def _blank_row(kind: np.dtype[Any]) -> NDArray[Any]:
    row = np.zeros(1, kind)
    for name in ("score", "threshold", "learned", "time"):
        row[name] = np.nan
    return row


class Records:
    """n samples as columns; indexing with a number, slice or array gives Records again.

    label is 0 (none), 1 (anomalous) or -1 (normal). Feed them to Detector.feedback, and keep those that it returns.
    """

    def __init__(self, rows: NDArray[Any]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> "Records":
        chosen = slice(index, index + 1 or None) if isinstance(index, int | np.integer) else index
        if isinstance(index, int | np.integer) and not -len(self) <= index < len(self):
            raise IndexError(f"record {index} of {len(self)}")
        return Records(self.rows[chosen])

    @property
    def seq(self) -> IntArray:
        """Sequence numbers, (n,)."""
        column: IntArray = self.rows["seq"]
        return column

    @property
    def x(self) -> FloatArray:
        """Samples in the user's units, (n, m)."""
        column: FloatArray = self.rows["x"]
        return column

    @property
    def score(self) -> FloatArray:
        """Scores given, (n,), NaN before ready."""
        column: FloatArray = self.rows["score"]
        return column

    @property
    def threshold(self) -> FloatArray:
        """Thresholds that the scores met, (n,), NaN before ready."""
        column: FloatArray = self.rows["threshold"]
        return column

    @property
    def is_anomaly(self) -> BoolArray:
        """Decisions, (n,)."""
        column: BoolArray = self.rows["is_anomaly"]
        return column

    @property
    def ready(self) -> BoolArray:
        """Whether there was a score, (n,)."""
        column: BoolArray = self.rows["ready"]
        return column

    @property
    def label(self) -> NDArray[np.int8]:
        """Labels as known to the detector, (n,)."""
        column: NDArray[np.int8] = self.rows["label"]
        return column

    @property
    def time(self) -> FloatArray:
        """Timestamps in seconds, (n,), NaN if none was given."""
        column: FloatArray = self.rows["time"]
        return column

    @staticmethod
    def concatenate(parts: "list[Records]", n_nodes: int = 0) -> "Records":
        """Several Records of one stream as one; their sides may differ in width, and get room for n_nodes nodes."""
        m = parts[0].x.shape[1]
        width = max(-(-n_nodes // 8), *(p.rows["left"].shape[1] for p in parts), 0)
        together = Records.empty(sum(map(len, parts)), m, 8 * width, altered=True)
        start = 0
        for part in parts:
            _copy(part.rows, together.rows[start : start + len(part)])
            start += len(part)
        return together

    @classmethod
    def joined(cls, parts: "list[Records]", n_features: int) -> "Records":
        """What came in parts, maybe in none, as one."""
        if len(parts) == 1:
            return parts[0]
        return cls.concatenate([cls.empty(0, n_features, 0, altered=False), *parts]).compact()

    @classmethod
    def empty(cls, n: int, n_features: int, n_nodes: int, *, altered: bool) -> "Records":
        """n blank records with room for the sides of n_nodes nodes; if altered, for samples learned as others too."""
        blank = _blank_row(row_type(n_features, -(-n_nodes // 8), n_features if altered else 0))
        return cls(blank.repeat(n))

    @classmethod
    def of(cls, seq: int, X: FloatArray, time: FloatArray, *, n_nodes: int = 0, altered: bool = False) -> "Records":
        """New records of samples (n, m), the first one number seq, with nothing said of them yet."""
        records = cls.empty(len(X), X.shape[1], n_nodes, altered=altered)
        rows = records.rows
        rows["seq"], rows["x"], rows["time"] = np.arange(seq, seq + len(X)), X, time
        return records

    def widened(self, n_nodes: int) -> "Records":
        """A copy with room for the sides of n_nodes nodes, and for what differs from the samples; compact undoes it."""
        return Records.concatenate([self], n_nodes)

    def compact(self) -> "Records":
        """The same records, no wider than they need be."""
        used = np.flatnonzero(self.rows["left"].any(0))
        width = int(used[-1]) + 1 if used.size else 0
        m = self.rows["x"].shape[1]
        altered = 0 if np.isnan(self.rows["learned"]).all() else m
        rows = np.zeros(len(self), row_type(m, width, altered))
        for name in rows.dtype.names or ():
            wide = self.rows[name]
            rows[name] = wide if wide.ndim == 1 else wide[:, : rows[name].shape[1]]
        return Records(rows)

    def to_bytes(self) -> bytes:
        """Versioned, checksummed bytes: a fixed header, for one sample is often all there is, then the rows."""
        m, width, altered = (self.rows.dtype[name].shape[0] for name in ("x", "left", "learned"))
        body = _HEADER.pack(MAGIC, VERSION, m, width, altered) + self.rows.tobytes()
        return body + digest(body)

    @classmethod
    def from_bytes(cls, blob: bytes) -> "Records":
        """The inverse of to_bytes; InvalidSnapshot for anything else."""
        return cls(_checked_rows(*_opened(blob)))

    @classmethod
    def all_from_bytes(cls, blobs: Sequence[bytes]) -> "Records":
        """Several Records of one stream as one; of many short ones most of the time would go into their checks."""
        parts = []
        for kind, together in groupby(map(_opened, blobs), itemgetter(0)):
            parts.append(cls(_checked_rows(kind, b"".join(rows for _, rows in together))))
        return parts[0] if len(parts) == 1 else cls.concatenate(parts)

    def check(self) -> None:
        """InvalidSnapshot for values that no detector writes."""
        _check_ranges(self.rows)

    def note_decided(self, decisions: Mapping[str, NDArray[Any]]) -> None:
        """Write what was said of the samples, columns (n,) by name."""
        self.rows["ready"] = True
        for name, column in decisions.items():
            self.rows[name] = column

    def note_learned(self, chosen: BoolArray | slice, batch: Batch, ordinal: int) -> None:
        """Write how the chosen samples are learned, which get the ordinals from this one on."""
        rows = self.rows
        rows["status"][chosen] = LEARNED
        rows["ordinal"][chosen] = np.arange(ordinal, ordinal + len(batch.Z))
        if (width := -(-batch.left.shape[1] // 8)) > 0:
            column = rows["left"]
            column[chosen] = 0
            column[chosen, :width] = np.packbits(batch.left, axis=1, bitorder="little")
        if rows["learned"].shape[1]:
            rows["learned"][chosen] = np.where(batch.altered[:, None], batch.learned, np.nan)
            rows["spread"][chosen] = batch.spread

    def put(self, i: int, record: "Records") -> None:
        """Overwrite record i by a single one, which may be narrower."""
        _copy(record.widened(8 * self.rows["left"].shape[1]).rows, self.rows[i : i + 1])

    def replaced(self, i: int, record: "Records") -> "Records":
        """These records with number i exchanged."""
        return Records.concatenate([self[:i], record, self[i + 1 :]]).compact()

    def learned_sample(self, scaled: FloatArray, moment: float) -> LearnedSample:
        """How a single record was learned; scaled (m,) is its x in the model's space, moment its time on its clock."""
        row = self.rows[0]
        left = np.unpackbits(row["left"], bitorder="little").astype(bool)
        altered = row["learned"].size > 0 and not np.isnan(row["learned"]).any()
        learned, spread = (row["learned"], row["spread"]) if altered else (scaled, np.zeros_like(scaled))
        return LearnedSample(int(row["ordinal"]), moment, learned, spread, left)


def _opened(blob: bytes) -> tuple[np.dtype[Any], bytes]:
    """The layout and the bytes of the rows."""
    if not blob.startswith(MAGIC) or len(blob) < _HEADER.size + DIGEST_BYTES:
        raise InvalidSnapshot("it does not begin with the mark of records")
    body, checksum = blob[:-DIGEST_BYTES], blob[-DIGEST_BYTES:]
    if digest(body) != checksum:
        raise InvalidSnapshot("its checksum does not match: it is damaged or cut short")
    _, version, *shape = _HEADER.unpack_from(body)
    if version != VERSION:
        raise InvalidSnapshot(f"its version is {version}; this program reads version {VERSION}")
    kind = row_type(*shape)
    if (len(body) - _HEADER.size) % kind.itemsize:
        raise InvalidSnapshot("its rows do not fit their layout")
    return kind, body[_HEADER.size :]


def _checked_rows(kind: np.dtype[Any], body: bytes) -> NDArray[Any]:
    rows = np.frombuffer(body, kind).copy()
    _check_ranges(rows)
    return rows


def _check_ranges(rows: NDArray[Any]) -> None:
    """InvalidSnapshot for values that no detector writes."""
    codes = [
        (rows["label"] >= -1) & (rows["label"] <= 1),
        (rows["status"] >= NOT_LEARNED) & (rows["status"] <= RETRACTED),
    ]
    flags = [rows[name].view(np.uint8) <= 1 for name in ("is_anomaly", "ready")]
    numbers = [
        ~np.isinf(rows[name]) for name in ("x", "score", "threshold", "level", "gain", "time", "learned", "spread")
    ]
    numbers += [~np.isnan(rows[name]) for name in ("level", "gain")]
    if not all(fits.all() for fits in (*codes, *flags, *numbers)):
        raise InvalidSnapshot("its rows hold a value that no detector writes")


def _copy(source: NDArray[Any], target: NDArray[Any]) -> None:
    for name in source.dtype.names or ():
        if source[name].ndim == 1:
            target[name] = source[name]
        else:
            target[name][:, : source[name].shape[1]] = source[name]
