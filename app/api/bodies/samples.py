"""Reads samples from the three kinds of body that /observe takes, and the points of /density."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import cast

import msgspec
import numpy as np
from msgspec import UNSET, Raw, UnsetType

from app.api.bodies.columns import (
    IDS,
    LIMIT_SETTING,
    POINTS,
    SAMPLES,
    SHORT,
    TIMESTAMPS,
    Column,
    Row,
    count_names,
    elements,
    names_of,
    read_column,
    read_row,
    refuse_repeated,
    refuse_repeated_in,
)
from app.api.bodies.json_tree import read_tree
from app.api.bodies.raw import RawDensityBody, RawObserveBody, decode_short, raw_body
from app.api.bodies.reading import json_reason, refuse_repeated_names, without_bom
from app.api.bodies.row_faults import line_fault
from app.api.bodies.splitting import ELEMENT_BYTES, PIECE_BYTES, lines_of
from app.api.routing import BYTES, JSON, NDJSON
from app.api.schemas.density import DensityBody
from app.api.schemas.samples import ObserveBody, ObserveLine
from app.api.schemas.types import ArraySample, Moment, NamedSample
from app.streams.batches.batch import Batch
from app.streams.batches.binary import BinarySamples
from app.streams.batches.rows import ArraySamples, NamedSamples
from app.streams.batches.samples import MixedSamples, Samples
from app.streams.batches.timestamps import Times
from app.streams.errors import InvalidIds, InvalidSamples, InvalidTimestamps, refuse_beyond
from app.streams.faults import Faults

_OBSERVE = msgspec.json.Decoder(ObserveBody)
_DENSITY = msgspec.json.Decoder(DensityBody)
_LINE = msgspec.json.Decoder(ObserveLine)
_ROW = msgspec.json.Decoder(ArraySample | NamedSample)
_RAW_OBSERVE = msgspec.json.Decoder(RawObserveBody)
_RAW_DENSITY = msgspec.json.Decoder(RawDensityBody)
EXCERPT_BYTES = 80
SAME_FORM = "of the same form as the first: all arrays or all objects"
ALL_OR_NONE = "given with every sample or with none"


class Rows:
    """Gathers the rows of a batch piece by piece, and the faults of the invalid ones."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._form: type | None = None
        self._parts: list[Samples] = []
        self.faults = Faults()

    def add(self, rows: Sequence[Row], places: Sequence[int]) -> None:
        """Add the rows at these places."""
        if not rows:
            return
        self._form = form = self._form or type(rows[0])
        if set(map(type, rows)) != {form}:
            for row, place in zip(rows, places, strict=True):
                if type(row) is not form:
                    self.faults.add(place, f"{self._field}[{place}]", row, SAME_FORM)
            places = [place for row, place in zip(rows, places, strict=True) if type(row) is form]
            rows = [row for row in rows if type(row) is form]
        if rows:
            self._parts.append(samples_of(rows, self._field, places))

    def samples(self) -> Samples:
        """Give the samples that were added."""
        if len(self._parts) == 1 and not len(self.faults):
            return self._parts[0]
        return MixedSamples(self._parts, self._field, self.faults)


async def read_batch(media: str, body: bytes, limit: int) -> Batch:
    """Read the samples of a body; TooMany before decoding far more than the limit."""
    return Batch(BinarySamples(body)) if media == BYTES else await READERS[media](body, limit)


async def read_json(body: bytes, limit: int) -> Batch:
    """Read {"samples": [...], "ids": [...], "timestamps": [...]}."""
    body = without_bom(body)
    given, error = decode_short(_OBSERVE, body)
    if given is None:
        return await read_parts(body, limit, error)
    ids = () if given.ids is UNSET else tuple(client_id or "" for client_id in given.ids)
    own = 1 + (given.ids is not UNSET) + (given.timestamps is not UNSET)
    # times written as text hold colons that the decoded times do not show: such bodies are read again
    refuse_repeated_names(body, own + count_names(given.samples), [*ids, *names_of(given.samples)])
    times = None if given.timestamps is UNSET else times_of(given.timestamps)
    return Batch(alike(given.samples, "samples"), ids, times)


async def read_parts(body: bytes, limit: int, error: msgspec.ValidationError | None) -> Batch:
    """Read a long body, or one with this error, piece by piece; other requests run in between."""
    parts = await raw_body(_RAW_OBSERVE, body, error)
    samples = await read_samples(SAMPLES, parts.samples, limit)
    ids = await read_column(IDS, parts.ids, limit)
    times = await read_times(parts.timestamps, limit)
    return Batch(samples, tuple(client_id or "" for client_id in ids), times)


async def read_times(raw: Raw | UnsetType, limit: int) -> Times | None:
    """Read the times of a long body piece by piece; None if it has none."""
    moments = await read_column(TIMESTAMPS, raw, limit)
    return None if raw is UNSET else times_of(moments)


async def read_points(body: bytes, limit: int) -> Batch:
    """Read {"points": [...], "timestamps": [...]}."""
    body = without_bom(body)
    given, error = decode_short(_DENSITY, body)
    if given is None:
        parts = await raw_body(_RAW_DENSITY, body, error)
        points = await read_samples(POINTS, parts.points, limit)
        return Batch(points, timestamps=await read_times(parts.timestamps, limit))
    own = 1 + (given.timestamps is not UNSET)
    refuse_repeated_names(body, own + count_names(given.points), names_of(given.points))
    times = None if given.timestamps is UNSET else times_of(given.timestamps)
    return Batch(alike(given.points, "points"), timestamps=times)


async def read_samples(column: Column, raw: Raw, limit: int) -> Samples:
    """Read samples piece by piece."""
    rows = Rows(column.name)
    async for part, places in elements(column, raw, limit, rows.faults):
        rows.add(part, places)
    return rows.samples()


async def read_lines(body: bytes, limit: int) -> Batch:
    """Read one sample a line: an array, an object, or {"sample": ..., "id": ..., "timestamp": ...}."""
    lines = lines_of(without_bom(body), limit)
    refuse_beyond(limit, len(lines), "samples", LIMIT_SETTING)
    if not lines:
        raise InvalidSamples("samples", [], "at least one line")
    rows = Rows("samples")
    faults = {"samples": rows.faults, "ids": Faults(), "timestamps": Faults()}
    read: list[ObserveLine] = []
    for part in line_pieces(lines):
        places, found = read_part(lines, part, faults)
        rows.add([line.sample for line in found], places)
        read += found
        await asyncio.sleep(0)
    InvalidIds.for_any(faults["ids"])
    InvalidTimestamps.for_any(faults["timestamps"])
    ids = tuple(line.id if isinstance(line.id, str) else "" for line in read)
    return Batch(rows.samples(), ids if any(ids) else (), times_in(read))


def line_pieces(lines: Sequence[bytes]) -> Iterator[range]:
    """Split lines into pieces that are quick to decode."""
    first, size = 0, 0
    for i, line in enumerate(lines):
        size += len(line)
        if size >= PIECE_BYTES:
            yield range(first, i + 1)
            first, size = i + 1, 0
    if first < len(lines):
        yield range(first, len(lines))


def read_part(lines: Sequence[bytes], part: range, faults: Mapping[str, Faults]) -> tuple[list[int], list[ObserveLine]]:
    """Read some lines; give the valid ones with their places."""
    places, found = [], []
    for place in part:
        try:
            found.append(read_line(lines[place]))
            places.append(place)
        except (ValueError, RecursionError) as error:
            add_line_fault(faults, place, lines[place], error)
    return places, found


def add_line_fault(faults: Mapping[str, Faults], place: int, line: bytes, error: Exception) -> None:
    """Add what is wrong with a line."""
    field = f"samples[{place}]"
    if len(line) > ELEMENT_BYTES:
        faults["samples"].add(place, field, f"a line of {len(line)} bytes", SHORT)
        return
    try:
        tree = read_tree(line)
    except (ValueError, RecursionError) as unread:
        excerpt = line[:EXCERPT_BYTES].decode(errors="replace")
        why = unread if isinstance(error, msgspec.ValidationError) else error
        faults["samples"].add(place, field, excerpt, json_reason(why, line, excerpt))
        return
    refuse_repeated_in(tree, field)
    name, fault = line_fault(tree)
    faults[name].add(place, f"{name}[{place}]{fault.field}", fault.value, fault.limit)


def read_line(line: bytes) -> ObserveLine:
    """Read one line of NDJSON. Raises ValueError or RecursionError if it is invalid."""
    if len(line) > ELEMENT_BYTES:
        raise ValueError(SHORT)
    if not wraps_sample(line):
        return ObserveLine(read_row(line))
    read = _LINE.decode(line)
    given = (read.id is not UNSET) + (read.timestamp is not UNSET)
    texts = [*names_of([read.sample]), read.id if isinstance(read.id, str) else ""]
    refuse_repeated(line, 1 + given + count_names([read.sample]), texts)
    return read


def wraps_sample(line: bytes) -> bool:
    """Tell whether a line is an object whose "sample" is a sample, not a feature of that name."""
    if b'"sample"' not in line:
        return False
    try:
        _ROW.decode(line)
    except (ValueError, RecursionError):
        return True
    return False


def times_in(lines: Sequence[ObserveLine]) -> Times | None:
    """Give the times of the lines; None if they have none."""
    stamps = [line.timestamp for line in lines]
    if all(stamp is UNSET for stamp in stamps):
        return None
    if UNSET in stamps:
        raise InvalidTimestamps(f"timestamps[{stamps.index(UNSET)}]", None, ALL_OR_NONE)
    return times_of(stamps)


READERS: dict[str, Callable[[bytes, int], Awaitable[Batch]]] = {JSON: read_json, NDJSON: read_lines}


def alike(rows: Sequence[Row], field: str) -> Samples:
    """Give the rows of one request as samples; rows of another form than the first are faults."""
    if len(rows) == 1 or len(set(map(type, rows))) == 1:
        return samples_of(rows, field, range(len(rows)))
    gathered = Rows(field)
    gathered.add(rows, range(len(rows)))
    return gathered.samples()


def samples_of(rows: Sequence[Row], field: str, places: Sequence[int]) -> Samples:
    """Give rows of one form as samples."""
    if isinstance(rows[0], dict):
        return NamedSamples(cast(Sequence[NamedSample], rows), field, places)
    return ArraySamples(cast(Sequence[ArraySample], rows), field, places)


def times_of(moments: Sequence[Moment | UnsetType | None]) -> Times:
    """Give moments as epoch seconds; NaN for null."""
    return np.array([m.timestamp() if isinstance(m, datetime) else m for m in moments], dtype=np.float64)
