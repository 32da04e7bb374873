"""Joins records that come one series at a time into samples of several features."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final

from app.streams.batches.records import Record
from app.streams.batches.rows import NamedRow
from app.streams.errors import InvalidSamples, Refused

VERSION_DIGITS: Final = 8
ONCE: Final = "another feature: its stream has this one at this time already"


def joined(records: Sequence[Record], window_seconds: float, refused: dict[int, Refused]) -> list[Record]:
    """Join the records of each stream whose times lie in one window, and sort the samples by time.

    A record with a feature that its sample has already is refused. Ids end in a version of the names of features: what
    comes in another request for the same time is a sample of its own.
    """
    samples = dict[tuple[str, float], list[Record]]()
    for record in records:
        samples.setdefault((record.stream, window_of(record, window_seconds)), []).append(record)
    return sorted((whole(parts, refused) for parts in samples.values()), key=lambda sample: sample.time or 0.0)


def window_of(record: Record, seconds: float) -> float:
    """Give the number of the window of a record; its time, if windows have no length."""
    assert record.time is not None  # a source that joins names its time
    return record.time // seconds if seconds else record.time


def whole(parts: Sequence[Record], refused: dict[int, Refused]) -> Record:
    """Make one sample of records; it has the time and the id of the first."""
    first, *others = parts
    sample, places = dict(named(first)), list[int]()
    for part in others:
        given = named(part)
        repeated = next((name for name in given if name in sample), None)
        if repeated is None:
            sample |= given
            places.append(part.place)
        else:
            refused[part.place] = InvalidSamples(f"records[{part.place}].sample.{repeated}", given[repeated], ONCE)
    record = replace(first, sample=sample, joined=tuple(places))
    if first.client_id:
        record.client_id = f"{first.client_id}:{version_of(record)}"
    return record


def named(record: Record) -> NamedRow:
    """Give the sample of a record of an agent, whose values have names."""
    assert isinstance(record.sample, dict)
    return record.sample


def version_of(record: Record) -> str:
    """Name the set of features of a record, in any order."""
    return sha256("\0".join(sorted(named(record))).encode()).hexdigest()[:VERSION_DIGITS]
