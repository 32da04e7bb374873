"""Records: samples as columns, with all that a later label needs to know of each."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray
from core.decision.rule import Decisions
from core.density.round import Batch
from core.mixture.learned import LearnedSample
from core.records.encoding import Shape, pack, read_rows, shape_of, unpack
from core.records.layout import HELD_OUT, LEARNED, blank_row, check_rows, copy_rows, is_altered, row_type

_HELD_OUT: Final = HELD_OUT.to_bytes()


class Records:
    """n samples with their scores, decisions and labels, in columns of length n.

    A number, slice, mask or index array selects some of them: Records again. Pass Records to Detector.feedback with
    the labels, and from then on keep those that it returns in their place. rows (n,) is the structured array behind
    the columns; its fields are those of row_type.
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
        """Sequence numbers, (n,), from the first_seq of the detector on."""
        column: IntArray = self.rows["seq"]
        return column

    @property
    def x(self) -> FloatArray:
        """Samples in the user's units, (n, m), NaN where a value was missing."""
        column: FloatArray = self.rows["x"]
        return column

    @property
    def score(self) -> FloatArray:
        """Scores in nats, (n,), as they were given; NaN during the warm-up."""
        column: FloatArray = self.rows["score"]
        return column

    @property
    def threshold(self) -> FloatArray:
        """Thresholds in nats, (n,), that the scores were compared with; NaN during the warm-up."""
        column: FloatArray = self.rows["threshold"]
        return column

    @property
    def is_anomaly(self) -> BoolArray:
        """Decisions, (n,): True where the score was above the threshold."""
        column: BoolArray = self.rows["is_anomaly"]
        return column

    @property
    def ready(self) -> BoolArray:
        """Whether the sample got a score, (n,); False during the warm-up."""
        column: BoolArray = self.rows["ready"]
        return column

    @property
    def severity(self) -> FloatArray:
        """-log10 of the chance that an ordinary sample scores as high, (n,), NaN before ready."""
        column: FloatArray = self.rows["severity"]
        return column

    @property
    def event(self) -> NDArray[np.int8]:
        """What happened to the incident of each sample, (n,): places in INCIDENT_EVENTS."""
        column: NDArray[np.int8] = self.rows["event"]
        return column

    @property
    def incident(self) -> IntArray:
        """The seq of the sample that opened the incident of each, (n,); 0 for none."""
        column: IntArray = self.rows["incident"]
        return column

    @property
    def ordinary(self) -> BoolArray:
        """Whether each counts as ordinary, (n,); what is held back of an incident does not."""
        column: BoolArray = self.rows["ordinary"]
        return column

    @property
    def held_out(self) -> BoolArray:
        """Whether each was held out, (n,): scored and decided, but neither counted nor learned."""
        return self.rows["status"] == HELD_OUT if self.any_held_out else np.zeros(len(self), np.bool_)

    @property
    def any_held_out(self) -> bool:
        """Whether some was held out; a tenth of the price of looking at each, which matters for a single sample."""
        return _HELD_OUT in self.rows["status"].tobytes()

    @property
    def counted(self) -> "Records":
        """Those that were not held out."""
        return self[~self.held_out] if self.any_held_out else self

    @property
    def label(self) -> NDArray[np.int8]:
        """Labels, (n,): 1 anomalous, -1 normal, 0 none."""
        column: NDArray[np.int8] = self.rows["label"]
        return column

    @property
    def time(self) -> FloatArray:
        """Timestamps in seconds, (n,), NaN where none was given."""
        column: FloatArray = self.rows["time"]
        return column

    @property
    def altered(self) -> BoolArray:
        """Whether each says as what it was learned, (n,), since that is not the scaled sample itself."""
        return is_altered(self.rows)

    @staticmethod
    def concatenate(parts: "list[Records]", n_nodes: int = 0, altered: int = 0) -> "Records":
        """Join Records of one stream, of which there is at least one, with room for the sides of n_nodes nodes.

        altered is the number of columns of altered samples that there must be room for, too.
        """
        m = parts[0].x.shape[1]
        width = max(-(-n_nodes // 8), *(p.rows["left"].shape[1] for p in parts), 0)
        altered = max(altered, *(p.rows["learned"].shape[1] for p in parts), 0)
        together = Records.empty(sum(map(len, parts)), m, 8 * width, altered=altered)
        start = 0
        for part in parts:
            copy_rows(part.rows, together.rows[start : start + len(part)])
            start += len(part)
        return together

    @classmethod
    def joined(cls, parts: "list[Records]", n_features: int) -> "Records":
        """Join parts of one stream, or none; the result is no wider than it need be."""
        if len(parts) == 1:
            return parts[0]
        return cls.concatenate([cls.empty(0, n_features, 0), *parts]).compact()

    @classmethod
    def empty(cls, n: int, n_features: int, n_nodes: int, *, altered: int = 0) -> "Records":
        """Make n blank records, with room for the sides of n_nodes nodes, and altered columns of altered samples."""
        blank = blank_row(row_type(n_features, -(-n_nodes // 8), altered))
        return cls(blank.repeat(n))

    @classmethod
    def of(cls, seq: int, X: FloatArray, time: FloatArray, *, n_nodes: int = 0, altered: int = 0) -> "Records":
        """Make records of new samples (n, m) and timestamps (n,), numbered from seq on, without scores yet."""
        records = cls.empty(len(X), X.shape[1], n_nodes, altered=altered)
        rows = records.rows
        rows["seq"], rows["x"], rows["time"] = np.arange(seq, seq + len(X)), X, time
        return records

    def widened(self, n_nodes: int, altered: int) -> "Records":
        """Copy them, with room for the sides of n_nodes nodes, and altered columns of altered samples."""
        return Records.concatenate([self], n_nodes, altered)

    def renumbered(self, shift: int) -> "Records":
        """Copy them, with seqs so much higher."""
        rows = self.rows.copy()
        rows["seq"] += shift
        return Records(rows)

    def compact(self) -> "Records":
        """Copy them, no wider than they need be."""
        used = np.flatnonzero(self.rows["left"].any(0))
        width = int(used[-1]) + 1 if used.size else 0
        altered = 0 if np.isnan(self.rows["learned"]).all() else self.rows["learned"].shape[1]
        rows = np.zeros(len(self), row_type(self.rows["x"].shape[1], width, altered))
        for name in rows.dtype.names or ():
            wide = self.rows[name]
            rows[name] = wide if wide.ndim == 1 else wide[:, : rows[name].shape[1]]
        return Records(rows)

    def by_width(self) -> "tuple[Records, ...]":
        """Part the altered ones from the others, which then are narrower; give them as they are if none is altered."""
        if not self.rows["learned"].shape[1]:
            return (self,)
        altered = self.altered
        return self[altered], self[~altered].compact()

    def to_bytes(self) -> bytes:
        """Write versioned, checksummed bytes; from_bytes reads them."""
        return pack(self.rows)

    @classmethod
    def from_bytes(cls, blob: bytes) -> "Records":
        """Read what to_bytes wrote. Raises InvalidSnapshot for anything else."""
        return cls(read_rows(*unpack(blob)))

    @classmethod
    def all_from_bytes(cls, blobs: Sequence[bytes]) -> "Records":
        """Read several Records of one stream as one, faster than one by one. Raises what from_bytes raises."""
        parts = []
        for kind, together in groupby(map(unpack, blobs), itemgetter(0)):
            parts.append(cls(read_rows(kind, b"".join(rows for _, rows in together))))
        return parts[0] if len(parts) == 1 else cls.concatenate(parts)

    @staticmethod
    def shape_of(blob: bytes) -> Shape | None:
        """Give the shape of the Records whose to_bytes wrote this; None if a version before did, or something else."""
        return shape_of(blob)

    def check(self) -> None:
        """Raise InvalidSnapshot for values that no detector writes."""
        check_rows(self.rows)

    def note_decided(self, score: FloatArray, decided: Decisions) -> None:
        """Write scores (n,), and what was decided of them."""
        rows = self.rows
        rows["ready"], rows["score"] = True, score
        for name, column in decided._asdict().items():
            rows[name] = column

    def note_learned(self, chosen: BoolArray | slice, batch: Batch, ordinal: int) -> None:
        """Write how the chosen samples are learned; they get the ordinals from this one on."""
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
        """Overwrite record i by a single record, which may be narrower."""
        n_nodes, altered = 8 * self.rows["left"].shape[1], self.rows["learned"].shape[1]
        copy_rows(record.widened(n_nodes, altered).rows, self.rows[i : i + 1])

    def replaced(self, i: int, record: "Records") -> "Records":
        """Copy them, with record i replaced by a single record."""
        return Records.concatenate([self[:i], record, self[i + 1 :]]).compact()

    def learned_sample(self, scaled: FloatArray, moment: float) -> LearnedSample:
        """How the sample of a single record was learned.

        scaled (m,) are its columns in the space of the model, moment its time on the clock of forgetting.
        """
        row = self.rows[0]
        left = np.unpackbits(row["left"], bitorder="little").astype(bool)
        altered = row["learned"].size > 0 and not np.isnan(row["learned"]).any()
        learned, spread = (row["learned"], row["spread"]) if altered else (scaled, np.zeros_like(scaled))
        return LearnedSample(int(row["ordinal"]), moment, learned, spread, left)
