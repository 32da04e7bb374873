"""Documents of one kind: found by name, cached for seconds, bounded."""

import asyncio

import msgspec
import pytest

from app.documents import FRESH_SECONDS, TRIES, Documents, UnknownDocument
from app.storage import DocumentKind, StoreCorrupt, StoreUnavailable
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
    await store.put_document(KIND, "mine", b"[2]", b"[1]")
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
    await store.put_document(KIND, "bad", b"[1]", b"[")
    assert await documents.readable() == {"bad": [1], "preset": [0]}


def others_change(store, verb, bodies):
    """Let another worker put the next of these bodies after each read, as long as there are any."""
    kept = store.store

    async def change():
        if bodies:
            await kept.put_document(KIND, "mine", bodies.pop(0), await kept.document(KIND, "mine"))

    store.after[verb] = change


def refuse_nines(present):
    if present == [9]:
        raise PermissionError


@pytest.mark.parametrize(("verb", "change"), [("documents", "put"), ("document", "delete")])
@pytest.mark.parametrize("last", [b"[3]", b"[9]"])
async def test_what_came_in_between_is_checked_too(clock, verb, change, last):
    store = DisturbedStore(MemoryStore())
    documents = Documents(store, clock, 2, UnknownNote, made)
    await documents.put("mine", b"[1]")
    others_change(store, verb, [b"[2]", last])
    calling = documents.put("mine", b"[7]", refuse_nines) if change == "put" else documents.delete("mine", refuse_nines)
    if last == b"[9]":
        with pytest.raises(PermissionError):
            await calling
        assert await store.store.document(KIND, "mine") == last
    else:
        assert await calling in (False, None)
        assert await store.store.document(KIND, "mine") == (b"[7]" if change == "put" else None)


async def test_one_that_others_change_all_the_time_stays_theirs(clock):
    store = DisturbedStore(MemoryStore())
    documents = Documents(store, clock, 2, UnknownNote, made)
    others_change(store, "documents", [b"[%d]" % i for i in range(TRIES)])
    with pytest.raises(StoreUnavailable, match=f"'mine' was changed by others {TRIES} times"):
        await documents.put("mine", b"[7]")
    assert await store.store.document(KIND, "mine") == b"[%d]" % (TRIES - 1)
    assert await documents.put("mine", b"[7]") is False


async def test_those_that_go_for_a_new_one_are_as_many_as_needed(store, clock):
    for name in ("a", "b", "c", "d"):
        await store.put_document(KIND, name, b"[]")
    documents = Documents(store, clock, 3, UnknownNote, made)
    with pytest.raises(TooMany):
        await documents.put("e", b"[]", spare=lambda kept: ["b"])
    assert len(await documents.names()) == 4
    assert await documents.put("e", b"[]", spare=lambda kept: [name for name in "cbd" if name in kept])
    assert await documents.names() == ["a", "d", "e"]
