"""Makes samples of records, as a source says."""

from collections import ChainMap
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from app.sources.errors import InvalidRecord
from app.sources.joining import joined, version_of
from app.sources.keys import Keys, leaves_of
from app.sources.source import UNITS, Source, fields_of
from app.sources.templates import Leaves, MissingKey, Template, plain
from app.streams.batches.loose import Rules
from app.streams.batches.records import Record
from app.streams.errors import InvalidSamples, InvalidTimestamps, Refused

Moment = Annotated[datetime, Meta(tz=True)]
TIME: Final = "a number, or an RFC 3339 date and time with its offset"
FOUND: Final = "feature"
"""In the template of a feature's name, the name that its key or array gives it."""
NUMBER: Final = "a number or null"
HELD: Final = "a finite number that a double holds, at most 1.8e308"


class Mapper:
    """Makes samples of the records of one source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._keys = Keys(source.features, source.ignore)
        self._stream, self._id, self._feature = map(Template, (source.stream, source.id, source.feature))
        self._rules = rules_of(source)

    def record(self, place: int, tree: dict[str, Any]) -> Record | None:
        """Make a sample of a record, or part of one if the source joins; None if there is nothing in it to join.

        Raises Refused.
        """
        field, leaves = f"records[{place}]", leaves_of(tree)
        sample = self._sample(field, leaves)
        if not sample and self.source.join_seconds is not None:
            return None
        self._refuse_empty(field, leaves, sample)
        try:
            stream = self._stream.filled(leaves, plain)
            client_id = self._id.filled(leaves)
        except MissingKey as missing:
            raise lacking(field, missing, leaves) from None
        return Record(place, stream, sample, client_id, self._time(field, leaves), self._rules)

    def samples(self, records: list[Record], refused: dict[int, Refused]) -> list[Record]:
        """Make samples of all records of a request; add those that cannot be joined to the refused."""
        seconds = self.source.join_seconds
        found = records if seconds is None else joined(records, seconds, refused)
        if self.source.new == "version":
            for record in found:
                record.stream = f"{record.stream}:{version_of(record)}"
        return found

    def _sample(self, field: str, leaves: Leaves) -> dict[str, float | None]:
        sample: dict[str, float | None] = {}
        for path, found, value in self._found(field, leaves):
            name = self._named(field, leaves, found)
            if name in sample:
                raise InvalidSamples(f"{field}.{path}", value, f"of another name: {name!r} is there already")
            sample[name] = value
        return sample

    def _named(self, field: str, leaves: Leaves, found: str) -> str:
        """Give the name of a feature, as the source's template says if it has one."""
        if not self.source.feature:
            return found
        try:
            return self._feature.filled(ChainMap({FOUND: found}, leaves))  # type: ignore[arg-type] # it only reads leaves
        except MissingKey as missing:
            raise lacking(field, missing, leaves) from None

    def _refuse_empty(self, field: str, leaves: Leaves, sample: dict[str, float | None]) -> None:
        """Raise InvalidSamples for a record without a feature."""
        if not sample:
            arrays = self.source.arrays
            wanted = [*self.source.features, *([arrays.values] if arrays else [])]
            raise InvalidSamples(field, leaves, f"a record with a number at {' or '.join(wanted)}")

    def _found(self, field: str, leaves: Leaves) -> Iterator[tuple[str, str, float | None]]:
        """Give the features of a record with their paths; texts are features only where a path names them."""
        for path, value in leaves.items():
            meant = self._keys.feature_of(path)
            if meant is None:
                continue
            name, is_meant_alone = meant
            if is_number(value):
                yield path, name, held(f"{field}.{path}", value)
            elif is_meant_alone:
                raise InvalidSamples(f"{field}.{path}", value, NUMBER)
        if self.source.arrays is not None:
            yield from pairs(field, leaves, self.source.arrays.names, self.source.arrays.values)

    def _time(self, field: str, leaves: Leaves) -> float | None:
        path = self.source.timestamp
        if not path:
            return None
        value = leaves.get(path)
        if value is not None and is_number(value):
            time = held(f"{field}.{path}", value)
            return None if time is None else time / UNITS[self.source.timestamp_unit]
        try:
            return msgspec.convert(value, Moment).timestamp()
        except msgspec.ValidationError:
            raise InvalidTimestamps(f"{field}.{path}", value, TIME) from None


def lacking(field: str, missing: MissingKey, leaves: Leaves) -> InvalidRecord:
    """Say which key a record lacks for a template."""
    return InvalidRecord(f"{field}.{missing.path}", leaves.get(missing.path), "given")


def rules_of(source: Source) -> Rules:
    """Say how samples of a source fit their streams."""
    return Rules(source.missing == "null", "features" in source.config, lambda names: fields_of(source, names))


def is_number(value: Any) -> bool:
    """Tell whether a value can be one of a sample."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def held(field: str, value: float | None) -> float | None:
    """Give a number as a double. Raises InvalidSamples for a whole number beyond all doubles."""
    try:
        return None if value is None else float(value)
    except OverflowError:
        raise InvalidSamples(field, value, HELD) from None


def pairs(field: str, leaves: Leaves, names: str, values: str) -> Iterator[tuple[str, str, float | None]]:
    """Give the elements of two arrays, of names and of values."""
    named, given = leaves.get(names), leaves.get(values)
    if not (isinstance(named, list) and all(isinstance(name, str) for name in named)):
        raise InvalidSamples(f"{field}.{names}", named, "an array of names")
    if not (isinstance(given, list) and all(map(is_number, given)) and len(given) == len(named)):
        raise InvalidSamples(
            f"{field}.{values}", given, f"an array of {len(named)} numbers or nulls, one for each name"
        )
    for i, (name, value) in enumerate(zip(named, given, strict=True)):
        yield f"{values}[{i}]", name, held(f"{field}.{values}[{i}]", value)
