"""Documents of one kind: found by name, cached for seconds, bounded."""

import asyncio

import msgspec
import pytest

from app.documents import FRESH_SECONDS, Documents, UnknownDocument
from app.storage import DocumentKind, StoreCorrupt
from app.storage.memory import MemoryStore
from app.streams.errors import TooMany
from tests.app.harness import DisturbedStore, FakeClock

KIND = DocumentKind.SOURCE


class UnknownNote(UnknownDocument):
    kind = KIND


def made(body):
    return msgspec.json.decode(body, type=list[int])


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def documents(store, clock):
    return Documents(store, clock, 2, UnknownNote, made, {"preset": b"[0]"})


async def test_a_preset_is_there_until_a_document_has_its_name(documents):
    assert await documents.find("preset") == await documents.newest("preset") == [0]
    assert not await documents.is_kept("preset")
    assert await documents.put("preset", b"[1]")
    assert await documents.find("preset") == await documents.newest("preset") == [1]
    assert await documents.is_kept("preset")
    await documents.delete("preset")
    assert await documents.find("preset") == [0]
    with pytest.raises(UnknownNote, match="no source 'preset'"):
        await documents.delete("preset")


async def test_a_read_that_began_before_a_change_is_not_kept(clock):
    store, going = DisturbedStore(MemoryStore()), asyncio.Event()
    documents = Documents(store, clock, 2, UnknownNote, made)
    store.after["documents"] = going.wait
    reading = asyncio.create_task(documents.all())
    await asyncio.sleep(0)
    del store.after["documents"]
    await documents.put("mine", b"[1]")
    going.set()
    await reading
    assert await documents.all() == {"mine": [1]}


async def test_a_change_of_this_worker_shows_at_once_one_of_another_within_seconds(documents, store, clock):
    assert list(await documents.all()) == ["preset"]
    await documents.put("mine", b"[1]")
    assert await documents.all() == {"mine": [1], "preset": [0]}
    await store.put_document(KIND, "mine", b"[2]")
    assert await documents.find("mine") == [1]
    assert await documents.newest("mine") == [2]
    clock.advance(FRESH_SECONDS)
    assert await documents.find("mine") == [2]
    assert await documents.names() == ["mine", "preset"]


async def test_what_was_made_of_a_document_is_kept_until_it_changes(documents, clock):
    await documents.put("mine", b"[1]")
    first = await documents.find("mine")
    clock.advance(FRESH_SECONDS)
    assert await documents.find("mine") is first
    await documents.delete("mine")
    await documents.all()
    await documents.put("mine", b"[1]")
    assert await documents.find("mine") is not first


async def test_their_number_is_bounded(documents):
    await documents.put("a", b"[]")
    await documents.put("b", b"[]")
    with pytest.raises(TooMany) as refusal:
        await documents.put("c", b"[]")
    assert refusal.value.faults[0].limit == "at most 2 sources (ITAN_MAX_SOURCES) in one request"
    assert not await documents.put("a", b"[1]")


async def test_one_that_cannot_be_read_harms_no_other(documents, store):
    await store.put_document(KIND, "broken", b"{")
    await store.put_document(KIND, "whole", b"[3]")
    assert await documents.find("whole") == [3]
    for read in (documents.find, documents.newest):
        with pytest.raises(StoreCorrupt, match="source 'broken' cannot be read"):
            await read("broken")
    await documents.put("broken", b"[4]")
    assert await documents.find("broken") == [4]


async def test_readable_ones_are_found_without_the_others_which_the_log_names_once(documents, store, clock, caplog):
    await store.put_document(KIND, "bad", b"[")
    for _ in range(2):
        assert await documents.readable() == {"preset": [0]}
        clock.advance(FRESH_SECONDS)
    assert caplog.text.count("source 'bad' cannot be read") == 1
    await store.put_document(KIND, "bad", b"[1]")
    assert await documents.readable() == {"bad": [1], "preset": [0]}
