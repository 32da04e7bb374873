"""The samples and labels of archived entries as Parquet, for people to query."""

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from itertools import chain, count, repeat
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from app.storage import Entry
from app.streams.log.events import BatchEvent, LabelEvent, read_all_records, read_event, read_records

if TYPE_CHECKING:
    import pyarrow as pa

KNOWN: Final = {1: "anomalous", -1: "normal"}
GIVEN: Final = {True: "anomalous", False: "normal", None: "withdrawn"}


def samples_file(entries: Sequence[Entry], features: Sequence[str], labels: Mapping[int, int]) -> bytes:
    """Write the samples of entries, each a row; labels are those known by now, by seq: 1 anomalous, -1 normal."""
    return _written(samples_table(entries, features, labels))


def labels_file(entries: Sequence[Entry]) -> bytes | None:
    """Write the labels that entries tell of; None if they tell of none."""
    table = labels_table(entries)
    return _written(table) if table.num_rows else None


def no_labels_file() -> bytes:
    """Write a file of labels that has no rows."""
    return _written(labels_table([]))


def samples_table(entries: Sequence[Entry], features: Sequence[str], labels: Mapping[int, int]) -> "pa.Table":
    """Give the samples of entries; `time` is their timestamp, or when they arrived if they came without one."""
    import pyarrow as pa

    batches = [entry for entry in entries if entry.first_seq is not None]
    events = [event for event in map(read_event, (entry.body for entry in batches)) if isinstance(event, BatchEvent)]
    lengths = [entry.n_samples for entry in batches]
    records = read_all_records([event.records for event in events]) if events else None
    columns: dict[str, Any] = {}
    x = np.empty((0, len(features)))
    if records is not None:
        x = records.x
        at = np.repeat([event.at for event in events], lengths)
        ids = chain.from_iterable(entry.ids or repeat("", n) for entry, n in zip(batches, lengths, strict=True))
        columns = {
            "seq": records.seq,
            "id": [name or None for name in ids],
            "time": _microseconds(np.where(np.isnan(records.time), at, records.time)),
            "arrived": _microseconds(at),
            "score": records.score,
            "threshold": records.threshold,
            "severity": records.severity,
            "is_anomaly": records.is_anomaly,
            "ready": records.ready,
            "in_maintenance": records.held_out,
            "incident": [incident or None for incident in records.incident.tolist()],
            "label": [KNOWN.get(labels.get(seq, 0)) for seq in records.seq.tolist()],
        }
    kinds = _sample_types()
    arrays = [pa.array(columns.get(name, []), kind, from_pandas=True) for name, kind in kinds.items()]
    arrays += [pa.array(x[:, place], pa.float64(), from_pandas=True) for place in range(len(features))]
    return pa.table(arrays, [*kinds, *distinct(features, kinds)])


def _sample_types() -> "dict[str, pa.DataType]":
    import pyarrow as pa

    moment = pa.timestamp("us", tz="UTC")
    numbers = dict.fromkeys(("score", "threshold", "severity"), pa.float64())
    decisions = dict.fromkeys(("is_anomaly", "ready", "in_maintenance"), pa.bool_())
    about = {"seq": pa.int64(), "id": pa.string(), "time": moment, "arrived": moment}
    return {**about, **numbers, **decisions, "incident": pa.int64(), "label": pa.string()}


def labels_table(entries: Sequence[Entry]) -> "pa.Table":
    """Give the labels that entries tell of, in the order in which they were given."""
    import pyarrow as pa

    rows = [row for entry in entries if entry.first_seq is None for row in _labels_in(entry)]
    seqs, labels, given = zip(*rows, strict=True) if rows else ((), (), ())
    moments = pa.array(_microseconds(np.array(given, np.float64)), pa.timestamp("us", tz="UTC"))
    return pa.table([pa.array(seqs, pa.int64()), pa.array(labels, pa.string()), moments], ["seq", "label", "given"])


def _labels_in(entry: Entry) -> Iterator[tuple[int, str, float]]:
    event = read_event(entry.body)
    if isinstance(event, LabelEvent):
        seqs = read_records(event.records).seq.tolist()
        yield from ((seq, GIVEN[label], event.at) for seq, label in zip(seqs, event.labels, strict=True))


def distinct(features: Sequence[str], taken: Mapping[str, object]) -> list[str]:
    """Name the columns of features; a name that another column bears, in whatever case, gets a number."""
    used, names = {name.lower() for name in (*taken, "stream")}, []
    for feature in features:
        tries = chain([feature], (f"{feature}_{number}" for number in count(2)))
        name = next(name for name in tries if name.lower() not in used)
        used.add(name.lower())
        names.append(name)
    return names


def _microseconds(times: npt.NDArray[np.float64]) -> npt.NDArray[np.datetime64]:
    """Give epoch seconds as moments, exact to the microsecond."""
    seconds = np.floor(times)
    return (seconds.astype(np.int64) * 1_000_000 + np.round((times - seconds) * 1e6).astype(np.int64)).view("M8[us]")


def _written(table: "pa.Table") -> bytes:
    import pyarrow.parquet as pq

    target = BytesIO()
    pq.write_table(table, target, compression="zstd")
    return target.getvalue()
