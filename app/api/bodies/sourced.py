"""Reads the records of agents, and makes samples of them."""

import asyncio
from typing import Final

from app.api.bodies.formats import FORMS, split
from app.api.bodies.reading import without_bom
from app.api.bodies.records import Reading, in_turns, refuse
from app.api.bodies.row_faults import is_a
from app.api.bodies.wording import ID
from app.api.schemas.types import ClientId
from app.sources.mapper import Mapper
from app.streams.batches.records import Record
from app.streams.errors import InvalidIds, Refused
from app.streams.ids import checked_stream_id

CHECKED_AT_ONCE: Final = 1_000


async def read_sourced(media: str, body: bytes, limit: int, mapper: Mapper) -> Reading:
    """Read the records of an agent, and make samples of them; other requests run in between."""
    reading, ignored = Reading([], {}), 0
    read = FORMS[mapper.source.format].read
    parts = list[Record]()
    async for place, given in in_turns(await split(media, without_bom(body), limit, mapper.source)):
        try:
            record = mapper.record(place, read(place, given))
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
