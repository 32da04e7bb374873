"""Reads the records of POST /ingest, each by itself: what is wrong with one does not touch the others."""

import asyncio
import math
from collections.abc import AsyncIterator, Iterable, Sequence, Sized
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET

from app.api.bodies.columns import count_names, names_of, refuse_dropped
from app.api.bodies.json_tree import REPEATED, read_tree, repeated_name
from app.api.bodies.members import part_of
from app.api.bodies.reading import InvalidBody, InvalidJson, invalid_json, json_reason, without_bom
from app.api.bodies.row_faults import id_fault, is_a, row_fault, time_fault
from app.api.bodies.splitting import ELEMENT_BYTES, PIECE_BYTES, TooLong, element, elements_of, holds_lines, lines_of
from app.api.bodies.wording import left_out
from app.api.routing import NDJSON
from app.api.schemas.ingest import IngestRecord
from app.api.schemas.types import ClientId, Moment
from app.streams.batches.records import Record
from app.streams.errors import (
    InvalidIds,
    InvalidSamples,
    InvalidTimestamps,
    Refused,
    TooMany,
    more_than,
    refuse_beyond,
)
from app.streams.faults import Fault
from app.streams.ids import checked_stream_id
from core import MAX_FEATURES

T = TypeVar("T")
_RECORD = msgspec.json.Decoder(IngestRecord)
_RAW = msgspec.json.Decoder(msgspec.Raw)
FIELDS: Final = IngestRecord.__struct_fields__
DEEPEST: Final = 4
NESTED: Final = element(DEEPEST)
LONGEST: Final = f"at most {ELEMENT_BYTES} bytes long and nested {DEEPEST} deep"
RECORD: Final = 'an object such as {"stream": "web-1", "sample": {"cpu": 0.3}}'
EMPTY_TOO: Final = "records, empty messages and comments"
LIMIT_SETTING: Final = "ITAN_MAX_BATCH_SAMPLES"
EXCERPT_BYTES: Final = 80
MESSAGE_BYTES: Final = 500
"""A message takes as long to read as so much text."""
REFUSED_AT_ONCE: Final = 100
"""To say what is wrong with a record takes as long as to read thirty."""


class Reading(NamedTuple):
    """The samples of a body, what is wrong with its other records by their places, and how many held nothing."""

    records: list[Record]
    refused: dict[int, Refused]
    ignored: int = 0


async def read_records(media: str, body: bytes, limit: int) -> Reading:
    """Read the records of a body, which have the form of an IngestRecord; other requests run in between."""
    reading = Reading([], {})
    split = split_lines if media == NDJSON else split_json
    async for place, text in in_turns(at_least_one(split(without_bom(body), limit))):
        try:
            reading.records.append(read_record(place, text))
        except Refused as error:
            await refuse(reading, place, error)
    return reading


async def refuse(reading: Reading, place: int, error: Refused) -> None:
    """Note what is wrong with a record, without the frames that raised it: they hold all that was read of it."""
    error.__cause__ = error.__context__ = None
    reading.refused[place] = error.with_traceback(None)
    if len(reading.refused) % REFUSED_AT_ONCE == 0:
        await asyncio.sleep(0)


def at_least_one(given: Sequence[T]) -> Sequence[T]:
    """Give the records. Raises InvalidBody if there is none."""
    if not given:
        raise InvalidBody("records", [], "at least one record")
    return given


async def in_turns(given: Sequence[T]) -> AsyncIterator[tuple[int, T]]:
    """Give each record, a text or a message, with its place; other requests run in between."""
    size = 0
    for place, one in enumerate(given):
        yield place, one
        size += size_of(one)
        if size >= PIECE_BYTES:
            size = 0
            await asyncio.sleep(0)


def size_of(part: Any) -> int:
    """Give how many bytes of text take as long to read."""
    return len(part) if isinstance(part, bytes) else MESSAGE_BYTES


def split_lines(body: bytes, limit: int) -> list[bytes]:
    """Split lines."""
    found = lines_of(body, limit)
    refuse_beyond(limit, len(found), "records", LIMIT_SETTING)
    return found


async def within_limit(parts: Iterable[T | None], limit: int) -> list[T]:
    """Give the records; a part without one, given as None, counts like one. Raises TooMany."""
    found, size = list[T](), 0
    for number, part in enumerate(parts, start=1):
        if part is not None:
            found.append(part)
        if number > limit:
            what = "records" if number == len(found) else EMPTY_TOO
            raise TooMany("records", f"more than {limit} {what}", f"at most {limit} {what} ({LIMIT_SETTING})")
        size += size_of(part)
        if size >= PIECE_BYTES:
            size = 0
            await asyncio.sleep(0)
    return found


def split_json(body: bytes, limit: int, key: str = "") -> list[bytes]:
    """Split an array, which may be at a key of an object; anything else is one record."""
    try:
        text = bytes(_RAW.decode(body))
        if key and text.startswith(b"{"):
            text = part_of(text, key)
    except Refused:
        raise
    except (ValueError, RecursionError) as error:
        raise no_array(error, body) from error
    if not text.startswith(b"["):
        return [text]
    found = list[bytes]()
    try:
        for one in elements_of(text, NESTED):
            if len(found) == limit:
                raise more_than(limit, "records", LIMIT_SETTING)
            found.append(one)
    except TooLong as error:
        raise InvalidBody(f"records[{error.place}]", f"part of {len(body)} bytes", LONGEST) from None
    return found


def no_array(error: Exception, body: bytes) -> InvalidJson:
    """Say that a body is not JSON, and how to send lines of it."""
    found = invalid_json(error, body)
    if not holds_lines(body):
        return found
    return InvalidJson(found.field, found.value, f"{found.limit}; send one record a line as {NDJSON}")


def read_record(place: int, text: bytes) -> Record:
    """Read one record. Raises Refused, with what is wrong where."""
    refuse_long(place, text)
    try:
        given = _RECORD.decode(text)
        rows = [given.sample]
        own = 2 + (given.id is not UNSET) + (given.timestamp is not UNSET)
        refuse_dropped(text, own + count_names(rows), own_texts(given, names_of(rows)))
    except (ValueError, RecursionError) as error:
        given = read_again(place, text, error)
    checked_stream_id(given.stream, f"records[{place}].stream")
    refuse_wide(given.sample, f"records[{place}].sample")
    time = given.timestamp
    return Record(
        place,
        given.stream,
        given.sample,
        given.id if isinstance(given.id, str) else "",
        None if time is UNSET else seconds_of(time),
    )


def seconds_of(time: Moment | None) -> float:
    """Give a moment in epoch seconds; NaN for null."""
    if time is None:
        return math.nan
    return time.timestamp() if isinstance(time, datetime) else float(time)


def refuse_wide(sample: Sized, field: str) -> None:
    """Raise InvalidSamples for a sample wider than any stream; a body of them would take much memory until its turn."""
    if len(sample) > MAX_FEATURES:
        raise InvalidSamples(field, f"a sample of {len(sample)} values", f"a sample of 1 to {MAX_FEATURES} values")


def own_texts(given: IngestRecord, names: Iterable[str]) -> list[str]:
    """Give the texts of a record that may hold colons."""
    return [*names, given.stream, given.id if isinstance(given.id, str) else ""]


def read_again(place: int, text: bytes, error: Exception) -> IngestRecord:
    """Read a record that is wrong, or only seemed so; say what is wrong."""
    tree, field = tree_of(place, text, error), f"records[{place}]"
    try:
        return _RECORD.decode(text)
    except (ValueError, RecursionError):
        kind, fault = record_fault(tree)
        raise kind(field + fault.field, fault.value, fault.limit) from None


def tree_of(place: int, text: bytes, error: Exception) -> Any:
    """Read a record as it is written. Raises InvalidJson for no JSON, and for a name given twice."""
    field = f"records[{place}]"
    try:
        tree = read_tree(text)
    except (ValueError, RecursionError) as unread:
        excerpt = text[:EXCERPT_BYTES].decode(errors="replace")
        why = unread if isinstance(error, msgspec.ValidationError) else error
        raise InvalidJson(field, excerpt, json_reason(why, text, excerpt)) from error
    if (repeated := repeated_name(tree)) is not None:
        path, value = repeated
        raise InvalidJson(field + path, value, REPEATED)
    return tree


def refuse_long(place: int, text: bytes) -> None:
    """Raise InvalidBody for a record that is too long."""
    if len(text) > ELEMENT_BYTES:
        raise InvalidBody(f"records[{place}]", f"a record of {len(text)} bytes", LONGEST)


def record_fault(tree: Any) -> tuple[type[Refused], Fault]:
    """Say what is wrong with a record, and what kind of error that is."""
    if not isinstance(tree, dict):
        return InvalidBody, Fault("", tree, RECORD)
    for name in ("stream", "sample"):
        if name not in tree:
            return InvalidBody, Fault(f".{name}", None, "given")
    unknown = next((name for name in tree if name not in FIELDS), None)
    if unknown is not None:
        return InvalidBody, Fault(f".{unknown}", tree[unknown], left_out(unknown, FIELDS))
    if not isinstance(tree["stream"], str):
        return InvalidBody, Fault(".stream", tree["stream"], "a text")
    if "id" in tree and not is_a(ClientId | None, tree["id"]):
        return InvalidIds, within("id", id_fault(tree["id"]))
    if "timestamp" in tree and not is_a(Moment | None, tree["timestamp"]):
        return InvalidTimestamps, within("timestamp", time_fault(tree["timestamp"]))
    return InvalidSamples, within("sample", row_fault(tree["sample"]))


def within(name: str, fault: Fault) -> Fault:
    """Give a fault of a field of a record."""
    return Fault(f".{name}{fault.field}", fault.value, fault.limit)
