"""Reads the records of agents, in the forms that these send."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from app.api.bodies.json_tree import REPEATED, unheld_number
from app.api.bodies.reading import InvalidBody, without_bom
from app.api.bodies.records import (
    LIMIT_SETTING,
    Reading,
    in_turns,
    refuse,
    refuse_long,
    split_json,
    split_lines,
    tree_of,
)
from app.api.bodies.row_faults import is_a
from app.api.bodies.wording import HELD, ID
from app.api.routing import JSON, NDJSON, TEXT
from app.api.schemas.types import ClientId
from app.sources.formats import influx
from app.sources.mapper import Mapper
from app.sources.source import Format, Source
from app.streams.batches.records import Record
from app.streams.errors import InvalidIds, InvalidSamples, Refused, refuse_beyond
from app.streams.ids import checked_stream_id

_RAW = msgspec.json.Decoder(msgspec.Raw)
_ANY = msgspec.json.Decoder()
MEDIA: Final[dict[Format, tuple[str, ...]]] = {"json": (JSON, NDJSON), "influx": (TEXT,)}
"""The types of bodies of each format."""
CHECKED_AT_ONCE: Final = 1_000


async def read_sourced(media: str, body: bytes, limit: int, mapper: Mapper) -> Reading:
    """Read the records of an agent, and make samples of them; other requests run in between."""
    reading, ignored = Reading([], {}), 0
    read_tree = TREES[mapper.source.format]
    parts = list[Record]()
    async for place, text in in_turns(split(media, without_bom(body), limit, mapper.source)):
        try:
            record = mapper.record(place, read_tree(place, text))
        except Refused as error:
            await refuse(reading, place, error)
        else:
            ignored += record is None
            parts += [record] if record else []
    for number, sample in enumerate(mapper.samples(parts, reading.refused)):
        await check(sample, reading)
        if number % CHECKED_AT_ONCE == 0:
            await asyncio.sleep(0)
    return reading._replace(ignored=ignored)


def split(media: str, body: bytes, limit: int, source: Source) -> Sequence[bytes]:
    """Split a body into the texts of its records."""
    if source.format == "influx":
        lines = list(islice(influx.lines_in(body), limit + 1))
        refuse_beyond(limit, len(lines), "records", LIMIT_SETTING)
        return lines
    is_of_lines = media == NDJSON or holds_lines(body)
    return split_lines(body, limit) if is_of_lines else split_json(body, limit, source.records)


async def check(sample: Record, reading: Reading) -> None:
    """Add a sample to those that were read, or refuse its records."""
    field = f"records[{sample.place}]"
    try:
        checked_stream_id(sample.stream, f"{field}.stream")
        if sample.client_id and not is_a(ClientId, sample.client_id):
            raise InvalidIds(f"{field}.id", sample.client_id, ID)
    except Refused as error:
        for place in sample.places:
            await refuse(reading, place, error)
    else:
        reading.records.append(sample)


def tree_of_json(place: int, text: bytes) -> dict[str, Any]:
    """Read a record in JSON. Raises Refused."""
    refuse_long(place, text)
    field = f"records[{place}]"
    try:
        tree = _ANY.decode(text)
        if may_repeat(tree, text):
            raise ValueError(REPEATED)
    except (ValueError, RecursionError) as error:
        tree = tree_of(place, text, error)
        refuse_unheld(tree, field)
    if not isinstance(tree, dict):
        raise InvalidBody(field, tree, "an object")
    return tree


def tree_of_line(place: int, text: bytes) -> dict[str, Any]:
    """Read a record in line protocol. Raises Refused."""
    refuse_long(place, text)
    return influx.tree_of(text, f"records[{place}]")


TREES: Final[dict[Format, Callable[[int, bytes], dict[str, Any]]]] = {"json": tree_of_json, "influx": tree_of_line}


def refuse_unheld(tree: Any, field: str) -> None:
    """Raise InvalidSamples for NaN, an infinity or a number too large: none of them is a text or a missing value."""
    if (unheld := unheld_number(tree)) is not None:
        path, value = unheld
        raise InvalidSamples(field + path, value, f"{HELD}, or null")


def may_repeat(tree: Any, text: bytes) -> bool:
    """Tell whether the text has other colons than those of the decoded names and texts: a name may come twice."""
    names, texts, waiting = 0, list[str](), [tree]
    while waiting:
        match waiting.pop():
            case dict() as node:
                names += len(node)
                texts += node
                waiting += node.values()
            case list() as node:
                waiting += node
            case str() as value:
                texts.append(value)
    return b"\\" in text or text.count(b":") != names + "".join(texts).count(":")


def holds_lines(body: bytes) -> bool:
    """Tell whether a body is lines of JSON, whatever its type says: so Fluent Bit sends its json_lines."""
    first, _, rest = body.lstrip().partition(b"\n")
    if not (first.startswith(b"{") and rest.strip()):
        return False
    try:
        _RAW.decode(first)
    except (ValueError, RecursionError):
        return False
    return True
