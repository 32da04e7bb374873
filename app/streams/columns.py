"""Samples of the log as columns, for those who look at them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from app.storage.base import Entry
from app.streams.events import BatchEvent, read_records
from app.streams.samples import Matrix


@dataclass(frozen=True, slots=True)
class Columns:
    """n samples: what was said of them, label (1 anomalous, -1 normal, 0 none), time in epoch seconds, ids ("": none).

    time is the sample's timestamp, or where it came without one that of its arrival.
    """

    seq: npt.NDArray[np.int64]
    id: npt.NDArray[np.object_]
    time: npt.NDArray[np.float64]
    score: npt.NDArray[np.float64]
    threshold: npt.NDArray[np.float64]
    is_anomaly: npt.NDArray[np.bool_]
    label: npt.NDArray[np.int8]
    x: Matrix

    def __len__(self) -> int:
        return len(self.seq)

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(*(column[rows] for column in self._columns()))

    def _columns(self) -> list[npt.NDArray[Any]]:
        return [getattr(self, field.name) for field in fields(self)]

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Put parts of one stream together."""
        return cls(*map(np.concatenate, zip(*(part._columns() for part in parts), strict=True)))

    @classmethod
    def blank(cls, n_features: int) -> Self:
        """Give no samples."""
        nothing, none = np.zeros(0), np.zeros(0, np.int64)
        ids, flags, labels = np.zeros(0, object), np.zeros(0, np.bool_), np.zeros(0, np.int8)
        return cls(none, ids, nothing, nothing, nothing, flags, labels, np.zeros((0, n_features)))

    def labelled(self, labels: dict[int, int]) -> Self:
        """Give the samples with these labels, by seq."""
        if not labels:
            return self
        label = [labels.get(seq, 0) for seq in self.seq.tolist()]
        return replace(self, label=np.array(label, np.int8))


def batch_columns(entry: Entry, event: BatchEvent) -> Columns:
    """Give the samples of a batch as they were answered: no label has come for them yet."""
    records = read_records(event.records)
    ids = np.array(entry.ids or [""] * len(records), dtype=object)
    time = np.where(np.isnan(records.time), event.at, records.time)
    said = (records.score, records.threshold, records.is_anomaly)
    return Columns(records.seq, ids, time, *said, np.zeros(len(records), np.int8), records.x)
