"""Samples in the three kinds of body that /observe reads."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import cast

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from app.api.bodies import InvalidJson, decode, refuse_repeated_names
from app.api.routing import BYTES, JSON, NDJSON
from app.api.schemas import ArraySample, DensityBody, Moment, NamedSample, ObserveBody, ObserveLine
from app.streams.errors import InvalidSamples, refuse_beyond
from app.streams.observing import Batch
from app.streams.samples import ArraySamples, BinarySamples, NamedSamples, Samples
from app.streams.timestamps import Times

Row = ArraySample | NamedSample

_OBSERVE = msgspec.json.Decoder(ObserveBody)
_DENSITY = msgspec.json.Decoder(DensityBody)
_ROW = msgspec.json.Decoder(ArraySample | NamedSample)
_LINE = msgspec.json.Decoder(ObserveLine)
_RAW_ROWS = msgspec.json.Decoder(list[msgspec.Raw])
NO_ROWS = msgspec.Raw(b"[]")
LIMIT_SETTING = "ITAN_MAX_BATCH_SAMPLES"


class Outline(msgspec.Struct):
    """The samples of a body as they are written."""

    samples: msgspec.Raw = NO_ROWS
    points: msgspec.Raw = NO_ROWS


_OUTLINE = msgspec.json.Decoder(Outline)


def read_batch(media: str, body: bytes, limit: int) -> Batch:
    """Read the samples of a body of that media type; TooMany before far more than the limit are made objects."""
    if media == JSON:
        refuse_many_rows(body, limit)
    elif media == NDJSON:
        refuse_beyond(limit, body.strip().count(b"\n") + 1, "samples", LIMIT_SETTING)
    return READERS[media](body)


def refuse_many_rows(body: bytes, limit: int) -> None:
    """Raise TooMany for a JSON body of too many rows: a million lists take seconds to make, and all others wait.

    Each row opens a bracket, so a body of few brackets needs no closer look; ids and names may hold brackets too.
    """
    if body.count(b"[") + body.count(b"{") > limit:
        outline = outline_of(body)
        for rows in (outline.samples, outline.points):
            refuse_beyond(limit, count_rows(rows), "samples", LIMIT_SETTING)


def outline_of(body: bytes) -> Outline:
    """Find the samples; bodies nested too deep have none, and who decodes them can say where they are."""
    try:
        return decode(_OUTLINE, body)
    except InvalidJson as error:
        if isinstance(error.__cause__, RecursionError):
            return Outline()
        raise


def count_rows(rows: msgspec.Raw) -> int:
    """Count the rows of an array without making them; what is no array of rows holds none."""
    text = bytes(rows)
    if b'"' not in text:
        return text.count(b"[") + text.count(b"{") - 1
    try:
        return len(_RAW_ROWS.decode(rows))
    except msgspec.ValidationError:
        return 0


def read_json(body: bytes) -> Batch:
    """Read {"samples": [...], "ids": [...], "timestamps": [...]}."""
    given = decode(_OBSERVE, body)
    ids = () if given.ids is UNSET else tuple(client_id or "" for client_id in given.ids)
    moments = [] if given.timestamps is UNSET else given.timestamps
    own = 1 + (given.ids is not UNSET) + (given.timestamps is not UNSET)
    # times written as text hold colons that the decoded times do not tell: such bodies are read again
    refuse_repeated_names(body, own + count_names(given.samples), [*ids, *names_of(given.samples)])
    return Batch(samples_of(given.samples, "samples"), ids, None if given.timestamps is UNSET else times_of(moments))


def read_lines(body: bytes) -> Batch:
    """Read one sample a line: an array, an object, or {"sample": ..., "id": ..., "timestamp": ...}."""
    lines = [line for line in body.strip().split(b"\n") if line.strip()]
    if not lines:
        raise InvalidSamples("samples", "", "at least one line")
    read = [read_line(line, f"samples[{i}]") for i, line in enumerate(lines)]
    stamped = [line.timestamp for line in read if line.timestamp is not UNSET]
    if stamped and len(stamped) < len(read):
        raise InvalidSamples("timestamp", None, "given with every sample or with none")
    ids = tuple("" if line.id is UNSET else line.id for line in read)
    samples = samples_of([line.sample for line in read], "samples")
    return Batch(samples, ids if any(ids) else (), times_of(stamped) if stamped else None)


def read_line(line: bytes, field: str) -> ObserveLine:
    """Read one line of NDJSON."""
    if wraps_sample(line):
        read = decode(_LINE, line, field)
        given = (read.id is not UNSET) + (read.timestamp is not UNSET)
        texts = [*names_of([read.sample]), "" if read.id is UNSET else read.id]
        refuse_repeated_names(line, 1 + given + count_names([read.sample]), texts)
        return read
    row = decode(_ROW, line, field)
    refuse_repeated_names(line, count_names([row]), names_of([row]))
    return ObserveLine(row)


def wraps_sample(line: bytes) -> bool:
    """Tell whether a line is an object whose "sample" is itself a sample, not a feature of that name."""
    if b'"sample"' not in line:
        return False
    try:
        _ROW.decode(line)
    except (ValueError, RecursionError):
        return True
    return False


def read_bytes(body: bytes) -> Batch:
    """Read little-endian float64 rows."""
    return Batch(BinarySamples(body))


READERS: dict[str, Callable[[bytes], Batch]] = {JSON: read_json, NDJSON: read_lines, BYTES: read_bytes}


def read_points(body: bytes, limit: int) -> Batch:
    """Read {"points": [...]}."""
    refuse_many_rows(body, limit)
    points = decode(_DENSITY, body).points
    refuse_repeated_names(body, 1 + count_names(points), names_of(points))
    return Batch(samples_of(points, "points"))


def count_names(rows: Iterable[Row]) -> int:
    """Count the names of object samples."""
    return sum(len(row) for row in rows if isinstance(row, dict))


def names_of(rows: Iterable[Row]) -> Iterable[str]:
    """Give the names of object samples."""
    return (name for row in rows if isinstance(row, dict) for name in row)


def samples_of(rows: Sequence[Row], field: str) -> Samples:
    """Give arrays or objects as samples; a mixture is refused."""
    kinds = set(map(type, rows))
    if len(kinds) > 1:
        odd = next(i for i, row in enumerate(rows) if type(row) is not type(rows[0]))
        raise InvalidSamples(f"{field}[{odd}]", rows[odd], "of the same form as the first: all arrays or all objects")
    if kinds == {dict}:
        return NamedSamples(cast(Sequence[NamedSample], rows), field)
    return ArraySamples(cast(Sequence[ArraySample], rows), field)


def times_of(moments: Sequence[Moment | UnsetType]) -> Times:
    """Give moments as epoch seconds."""
    return np.array([m.timestamp() if isinstance(m, datetime) else m for m in moments], dtype=np.float64)
