"""What every store promises of blocks: what was moved into one is read as before, and a torn move loses nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from signal import SIGKILL

import pytest

from app.storage import (
    MAX_SEQ,
    Entry,
    Position,
    Snapshot,
    StaleWriter,
    Store,
    StoredBlock,
    StoreUnavailable,
    StreamNotFound,
    StreamSize,
    open_store,
)
from app.storage.redis.keys import stream_keys
from app.streams.log import compaction
from app.streams.log.compaction import compact
from app.streams.log.log import Log
from tests.contract.conftest import url_of
from tests.contract.mover import move
from tests.forks import CONTEXT

START = Position(0, 0)
SEQS = [0, 1, 2, 6, 7, 13, 20, 24, 25, 99]
NAMES = [*(f"id {n}" for n in range(50)), "often", ""]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(compaction, "LEAST_SAMPLES", 6)
    monkeypatch.setattr(compaction, "MOST_SAMPLES", 8)


def entries_up_to(last: int, first: int = 1) -> list[Entry]:
    """Batches of one, two and three samples, some with ids, one of which comes again and again; events in between."""
    found, seq, sub = list[Entry](), first - 1, 0
    while seq < last:
        n = len(found) % 3 + 1
        if len(found) % 4 == 3:
            sub += 1
            found.append(Entry(Position(seq, sub), b"event %d-%d" % (seq, sub)))
            continue
        ids = ("often", *(f"id {seq + i}" for i in range(2, n + 1))) if len(found) % 2 else ()
        seq, sub = seq + n, 0
        found.append(Entry(Position(seq, 0), b"batch %d" % seq * 9, seq - n + 1, ids))
    return found


async def grow(store: Store, entries: list[Entry], after: Position = START) -> Position:
    for entry in entries:
        labels = {} if entry.first_seq is not None else {entry.position.seq: b"label of " + entry.body}
        await store.append("s", after, entry, labels)
        after = entry.position
    return after


async def filled(store: Store, last: int = 24) -> list[Entry]:
    entries = entries_up_to(last)
    await store.create("s", Snapshot(START, b"start"))
    await grow(store, entries)
    return entries


async def pack_all(store: Store) -> int:
    """Make as many blocks as there are samples for."""
    count = 0
    while await compact(store, "s", (await store.load("s"))[1], 1):
        count += 1
    return count


async def told(store: Store) -> tuple:
    """All that the log of the stream tells."""
    log = Log(store, "s")
    places = [
        START,
        Position(3, 0),
        Position(4, 1),
        Position(8, 0),
        Position(9, MAX_SEQ),
        Position(23, 0),
        Position(99, 0),
    ]
    return (
        [await log.entries(after, limit) for after in places for limit in (0, 1, 3, 1000)],
        [await log.entries_holding(seqs) for seqs in (SEQS, SEQS[3:], [7], [])],
        await log.find_ids(NAMES),
        await log.find_labels(SEQS),
        [entry async for page in log.pages(START) for entry in page],
        (await store.size("s")).log_entries,
        await store.load("s"),
        (await store.inspect("s")).faults,
    )


async def test_blocks_tell_what_the_entries_told(store):
    entries = await filled(store)
    before = await told(store)
    assert await store.packed_to("s") is None
    assert await pack_all(store) == 3
    assert (await store.packed_to("s")).seq >= 18
    assert isinstance(await store.entries("s", START, 1), StoredBlock)
    assert await told(store) == before
    await grow(store, entries_up_to(50, first=25)[:-1], entries[-1].position)
    grown = await told(store)
    assert await pack_all(store)
    assert await told(store) == grown
    assert grown[2]["often"] > before[2]["often"]
    assert grown[2].keys() > before[2].keys()


async def test_only_later_ids_stay_outside_blocks(store):
    await filled(store)
    await pack_all(store)
    assert {
        seq for seq in (await store.find_ids("s", NAMES)).seqs.values() if seq <= (await store.packed_to("s")).seq
    } == set()


async def test_a_repeated_move_changes_nothing_and_a_wrong_one_is_refused(store):
    entries = await filled(store)
    block = StoredBlock(START, entries[2].position, 3, b"body")
    for wrong in (
        StoredBlock(Position(1, 0), entries[2].position, 2, b"body"),
        StoredBlock(START, Position(entries[2].position.seq, 7), 3, b"body"),
    ):
        with pytest.raises(StaleWriter):
            await store.compact("s", wrong)
    for _ in range(2):
        await store.compact("s", block, {0: b"bucket"})
    before = await store.size("s"), await store.load("s"), await store.find_ids("s", [], [5])
    for wrong in (
        StoredBlock(START, entries[2].position, 3, b"other"),
        StoredBlock(entries[1].position, entries[4].position, 3, b"body"),
        StoredBlock(entries[2].position, Position(99, 0), 3, b"body"),
    ):
        with pytest.raises(StaleWriter):
            await store.compact("s", wrong)
    assert (await store.size("s"), await store.load("s"), await store.find_ids("s", [], [5])) == before
    assert before[2].buckets == {0: b"bucket"}
    for wrong in (StoredBlock(START, START, 1, b""), StoredBlock(START, Position(1, 0), 0, b"")):
        with pytest.raises(ValueError, match="a block of"):
            await store.compact("s", wrong)
    with pytest.raises(StreamNotFound):
        await store.compact("none", block)


async def test_trimming_drops_a_block_once_all_of_it_is_too_old(store):
    entries = await filled(store)
    labelled = (await store.find_labels("s", range(1, 25))).keys()
    await pack_all(store)
    first = await store.entries("s", START, 1)
    head = entries[-1].position
    await store.save_snapshot("s", Snapshot(head, b"all"), first.position.seq)
    assert await store.entries("s", START, 1) == first
    await store.save_snapshot("s", Snapshot(head, b"all"), first.position.seq + 1)
    second = await store.entries("s", START, 1)
    assert second.after == first.position
    log = Log(store, "s")
    assert (await log.entries(START, 1))[0].follows(first.position)
    left = await store.find_labels("s", range(1, 25))
    assert left.keys() == {seq for seq in labelled if seq > first.position.seq}
    assert (await log.find_ids(["id 3"])) == {}
    assert (await store.inspect("s")).faults == ()
    await store.save_snapshot("s", Snapshot(head, b"all"), 99)
    assert await store.size("s") == StreamSize(0, 0, 6)
    assert await store.entries("s", START, 1) == []
    assert (await store.find_ids("s", NAMES, [1, 2])).n_buckets == 0
    assert await store.load("s") == (Snapshot(head, b"all"), head)
    await grow(store, entries_up_to(40, first=25)[:3], head)
    assert (await store.inspect("s")).faults == ()


@pytest.mark.parametrize("verb", ["delete", "replace", "restore"])
async def test_nothing_of_the_blocks_outlives_a_stream(store, verb):
    entries = await filled(store)
    await pack_all(store)
    after = Snapshot(Position(24, 9), b"new")
    if verb == "delete":
        assert await store.delete("s")
        assert await store.create("s", after)
    elif verb == "replace":
        await store.replace("s", entries[-1].position, after)
    else:
        await store.restore("s", after)
    assert await store.load("s") == (after, after.position)
    assert await store.packed_to("s") is None
    assert await store.size("s") == StreamSize(0, 0, 3)
    assert await store.entries("s", START, 9) == []
    assert await store.entries_holding("s", SEQS) == []
    assert (await store.find_ids("s", NAMES, [1, 2])).n_buckets == 0


async def test_a_snapshot_before_the_end_of_the_blocks_is_continued_by_them(store):
    entries = await filled(store)
    await store.save_snapshot("s", Snapshot(entries[1].position, b"old"), 0)
    await pack_all(store)
    assert await store.load("s") == (Snapshot(entries[1].position, b"old"), entries[-1].position)


async def test_a_move_that_was_cut_short_is_finished_later(lasting_url, monkeypatch):
    async with opened(lasting_url) as store:
        entries = await filled(store)
        before = await told(store)
        with monkeypatch.context() as patched:
            stop_removing(store, patched)
            with pytest.raises(StoreUnavailable, match="cut short"):
                await pack_all(store)
    async with opened(lasting_url) as store:
        cut = await told(store)
        assert cut[:5] == before[:5]
        assert cut[6:] == before[6:]
        await store.save_snapshot("s", Snapshot(entries[-1].position, b"all"), 1)
        assert (await store.size("s")).log_entries == len(entries)
        assert await pack_all(store) == 2
        assert (await told(store))[:6] == before[:6]


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = open_store(url)
    await store.open()
    yield store
    await store.close()


def stop_removing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a move fail once the block is there."""

    def fail(*given: object, **more: object) -> object:
        raise StoreUnavailable("cut short")

    async def run(script: str, *given: object) -> object:
        return fail() if script == "trim" else await read(script, *given)

    if store.is_exclusive:
        monkeypatch.setattr("app.storage.sqlite.compaction.remove_packed", fail)
    else:
        read = store._calls.read
        monkeypatch.setattr(store._calls, "read", run)


@pytest.mark.parametrize("kind", ["sqlite", "valkey"])
async def test_kill_9_after_any_step_of_a_move_loses_nothing(kind, tmp_path, empty_server):
    url = url_of(kind, tmp_path, empty_server)
    async with opened(url) as store:
        await filled(store)
        before = await told(store)
    for steps, ends in ((1, -SIGKILL), (1, -SIGKILL), (2, -SIGKILL), (99, 0)):
        mover = CONTEXT.Process(target=move, args=(url, steps))
        mover.start()
        mover.join()
        assert mover.exitcode == ends
        async with opened(url) as store:
            now = await told(store)
        assert now[:5] == before[:5]
        assert now[6:] == before[6:]
    assert now == before


@pytest.mark.parametrize("kind", ["valkey", "sqlite"])
async def test_an_earlier_version_refuses_a_stream_with_blocks(kind, tmp_path, empty_server):
    async with opened(url_of(kind, tmp_path, empty_server)) as store:
        await filled(store)
        assert await what_earlier_versions_check(store)
        await pack_all(store)
        assert not await what_earlier_versions_check(store)


async def what_earlier_versions_check(store: Store) -> bool:
    """Tell whether a version before blocks would open the stream: by its log's length, or the file by its version."""
    if store.is_exclusive:
        version = await store.writer.run(lambda connection: connection.execute("PRAGMA user_version").fetchone())
        return version == (1,)
    keys = stream_keys("s")
    return int(await store._calls.send("HGET", keys.meta, "entries")) == await store._calls.send("XLEN", keys.log)
