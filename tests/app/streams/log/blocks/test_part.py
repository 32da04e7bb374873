"""Parts of blocks, and searches that look through them."""

import pytest

from app.storage import Entry, Position, Snapshot, StaleWriter
from app.storage.memory import MemoryStore
from app.streams.log.blocks import Block, Part, pack
from app.streams.log.compaction import compact
from app.streams.log.log import Log
from app.streams.log.search import OfIncident, OfSpan, Search
from app.streams.log.span import Span
from tests.app.streams.log.blocks.lives import EVENTS, entries_of

LIFE = entries_of(7, [*EVENTS, "labels"] * 6)


async def stored(entries: list[Entry]) -> MemoryStore:
    store = MemoryStore()
    await store.create("s", Snapshot(Position(0, 0), b""))
    head = Position(0, 0)
    for entry in entries:
        await store.append("s", head, entry)
        head = entry.position
    return store


async def found(store: MemoryStore, *ends: Position) -> list[list[int]]:
    """Look for the samples of an hour, the flagged ones of all, and those of an incident."""
    hour, ever = Span(1.8e9 + 600, 1.8e9 + 4200), Span()
    wanted = [OfSpan(hour, 1e10, False), OfSpan(ever, 1e10, True), OfIncident(3, False)]
    search = Search(Log(store, "s"), 1, wanted, 1000)
    for end in ends:
        await search.read_to(end)
    return search.found


def test_a_part_is_a_sequence_of_its_entries():
    part = Part(Block(pack(LIFE)), range(3, 9))
    assert list(part) == LIFE[3:9]
    assert list(part[1:]) == LIFE[4:9]
    assert (part[0], part[-1], part.end) == (LIFE[3], LIFE[8], LIFE[8].position)
    with pytest.raises(IndexError):
        part[6]


async def test_a_search_finds_in_blocks_what_it_finds_outside(monkeypatch):
    monkeypatch.setattr("app.streams.log.compaction.LEAST_SAMPLES", 20)
    monkeypatch.setattr("app.streams.log.compaction.MOST_SAMPLES", 20)
    plain, packed, end = await stored(LIFE), await stored(LIFE), LIFE[-1].position
    while await compact(packed, "s", LIFE[-10].position, 1):
        pass
    assert isinstance(await Log(packed, "s").part(Position(0, 0), 1), Part)
    expected = await found(plain, end)
    assert all(expected[:2])
    assert await found(packed, end) == await found(packed, LIFE[5].position, LIFE[30].position, end) == expected


async def test_a_search_in_blocks_notices_another_log(monkeypatch):
    monkeypatch.setattr("app.streams.log.compaction.LEAST_SAMPLES", 5)
    store, middle, end = await stored(LIFE), LIFE[5].position, LIFE[-1].position
    assert await compact(store, "s", end, 1)
    search = Search(Log(store, "s"), 1, [OfSpan(Span(), 1e10, False)], 1000)
    await search.read_to(middle)
    other = await stored(entries_of(8, ["batch"] * 60))
    store.stored["s"] = other.stored["s"]
    with pytest.raises(StaleWriter):
        await search.read_to(end)
