"""Samples of the log as columns."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, repeat
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from app.storage import Entry
from app.streams.batches.samples import Matrix
from app.streams.log.events import read_all_records, read_batch


@dataclass(frozen=True, slots=True)
class Columns:
    """n samples with their scores; label is 1 (anomalous), -1 (normal) or 0 (none), id is "" if there is none.

    time is in epoch seconds: the sample's timestamp, or its arrival if it came without one; stamp is NaN then. incident
    is 0 where there is none; event is a place in core.INCIDENT_EVENTS.
    """

    seq: npt.NDArray[np.int64]
    id: npt.NDArray[np.object_]
    time: npt.NDArray[np.float64]
    stamp: npt.NDArray[np.float64]
    score: npt.NDArray[np.float64]
    threshold: npt.NDArray[np.float64]
    is_anomaly: npt.NDArray[np.bool_]
    severity: npt.NDArray[np.float64]
    incident: npt.NDArray[np.int64]
    event: npt.NDArray[np.int8]
    in_maintenance: npt.NDArray[np.bool_]
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
        """Concatenate parts of one stream."""
        return cls(*map(np.concatenate, zip(*(part._columns() for part in parts), strict=True)))

    def labelled(self, labels: dict[int, int]) -> Self:
        """Give the samples with these labels, which are by seq."""
        if not labels:
            return self
        label = [labels.get(seq, 0) for seq in self.seq.tolist()]
        return replace(self, label=np.array(label, np.int8))


def batch_columns(entries: Sequence[Entry]) -> Columns:
    """Give the samples of consecutive batches as they were answered, without labels."""
    events = [read_batch(entry.body) for entry in entries]
    records = read_all_records([event.records for event in events])
    lengths = [entry.n_samples for entry in entries]
    ids = chain.from_iterable(entry.ids or repeat("", n) for entry, n in zip(entries, lengths, strict=True))
    time = np.where(np.isnan(records.time), np.repeat([event.at for event in events], lengths), records.time)
    decided = (records.score, records.threshold, records.is_anomaly)
    said = (*decided, records.severity, records.incident, records.event, records.held_out)
    return Columns(
        records.seq, np.array(list(ids), object), time, records.time, *said, np.zeros(len(records), np.int8), records.x
    )
