"""Samples that name their streams, each a request of its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.streams.batches.batch import Batch
from app.streams.batches.loose import LooseSamples, Rules
from app.streams.batches.rows import ArrayRow, ArraySamples, NamedRow, NamedSamples
from app.streams.batches.samples import Samples


@dataclass(slots=True)
class Record:
    """A sample, its stream, and its place in the request; client_id is "" and time None if it has none.

    A time that is not known is NaN. `joined` are the places of further records of the same sample.
    With rules the sample, of names, need not fit its stream exactly; all records of a request have the same.
    """

    place: int
    stream: str
    sample: ArrayRow | NamedRow
    client_id: str = ""
    time: float | None = None
    rules: Rules | None = None
    joined: tuple[int, ...] = ()

    @property
    def places(self) -> tuple[int, ...]:
        """Give the places of all records of the sample."""
        return (self.place, *self.joined)

    def is_like(self, other: "Record") -> bool:
        """Tell whether both can be in one batch, apart from their ids."""
        return type(self.sample) is type(other.sample) and (self.time is None) == (other.time is None)


def runs(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Cut the records of a stream into batches: samples of one form, all with a time or none, no id twice."""
    first, ids = 0, set[str]()
    for end, record in enumerate(records):
        if end > first and (record.client_id in ids or not record.is_like(records[first])):
            yield records[first:end]
            first, ids = end, set()
        if record.client_id:
            ids.add(record.client_id)
    yield records[first:] if first else records


def batch_of(records: Sequence[Record]) -> Batch:
    """Make a batch of records that a run holds."""
    rows = [record.sample for record in records]
    rules = records[0].rules
    samples: Samples
    if rules is not None:
        samples = LooseSamples(rows, rules)  # type: ignore[arg-type]
    else:
        samples = NamedSamples(rows) if isinstance(rows[0], dict) else ArraySamples(rows)  # type: ignore[arg-type]
    ids = tuple([record.client_id for record in records])
    times = None if records[0].time is None else np.array([record.time for record in records], np.float64)
    return Batch(samples, ids if any(ids) else (), times)
