"""Every store keeps a summary of each stream, and gives thousands of them fast."""

import sqlite3
from contextlib import closing

from app.storage import Position, Snapshot, SummaryRow, open_reader, open_store
from tests.contract.test_store import EVERY_BYTE, START, fill


async def put(store, **bodies: bytes) -> None:
    await store.put_summaries([SummaryRow(stream, body, 2**53) for stream, body in bodies.items()])


async def test_a_summary_is_found_and_replaced(store):
    await fill(store, "s")
    assert await store.find_summaries(["s", "none"]) == {}
    await put(store, s=EVERY_BYTE)
    assert await store.find_summaries(["s", "none"]) == {"s": EVERY_BYTE}
    await put(store, s=b"")
    assert await store.find_summaries(["s"]) == {"s": b""}
    await store.put_summaries([])
    assert await store.find_summaries([]) == {}


async def test_streams_are_listed_in_order_with_and_without(store):
    for stream in ("b", "a", "a.b", "c"):
        await fill(store, stream)
    await put(store, b=b"of b", a=b"of a")
    everything = [("a", b"of a"), ("a.b", None), ("b", b"of b"), ("c", None)]
    assert await store.summaries("", 10) == everything
    assert await store.summaries("a", 2) == everything[1:3]
    assert await store.summaries("c", 10) == []


async def test_many_are_kept_at_once(store):
    streams = [f"s{number:04d}" for number in range(1_100)]
    for stream in streams[::500]:
        await fill(store, stream)
    await store.put_summaries([SummaryRow(stream, stream.encode()) for stream in streams])
    there = {stream: stream.encode() for stream in streams[::500]}
    assert await store.summaries("", 2_000) == list(there.items())
    assert (await store.find_summaries(streams)).items() >= there.items()


async def test_what_begins_anew_has_no_summary(store):
    for stream in ("replaced", "restored", "deleted", "kept"):
        await fill(store, stream)
        await put(store, **{stream: b"old"})
    await store.replace("replaced", START.position, Snapshot(Position(0, 1), b"new"))
    await store.restore("restored", Snapshot(Position(0, 1), b"new"))
    await store.delete("deleted")
    assert await store.summaries("", 10) == [("kept", b"old"), ("replaced", None), ("restored", None)]
    await put(store, deleted=b"late")
    assert await store.summaries("", 10) == [("kept", b"old"), ("replaced", None), ("restored", None)]
    await store.create("deleted", START)
    assert await store.summaries("", 1) == [("deleted", None)]


async def test_an_older_token_replaces_nothing(store):
    await fill(store, "s")
    old, new = [await store.acquire("s", "a", 10.0) for _ in range(2)]
    await store.put_summaries([SummaryRow("s", b"new", new)])
    if not store.is_exclusive:
        await store.put_summaries([SummaryRow("s", b"old", old)])
    assert await store.find_summaries(["s"]) == {"s": b"new"}
    await store.put_summaries([SummaryRow("s", b"newer", new)])
    assert await store.find_summaries(["s"]) == {"s": b"newer"}


async def test_what_is_only_for_the_missing_replaces_nothing(store):
    for stream in ("s", "t"):
        await fill(store, stream)
    await put(store, s=b"known")
    await store.put_summaries([SummaryRow(stream, b"guessed", only_if_missing=True) for stream in ("s", "t")])
    assert await store.find_summaries(["s", "t"]) == {"s": b"known", "t": b"guessed"}
    await store.put_summaries([SummaryRow("t", b"known")])
    assert await store.find_summaries(["t"]) == {"t": b"known"}


async def test_summaries_last(lasting_url):
    store = open_store(lasting_url)
    await store.open()
    await fill(store, "s")
    await put(store, s=b"kept")
    await store.close()
    reader = open_reader(lasting_url)
    await reader.open()
    assert await reader.summaries("", 10) == [("s", b"kept")]
    await reader.close()


async def test_a_file_of_an_older_version_has_none_until_they_are_put(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/itan.db")
    await store.open()
    await fill(store, "s")
    await store.close()
    with closing(sqlite3.connect(tmp_path / "itan.db")) as connection:
        connection.execute("DROP TABLE summaries")
    reader = open_reader(f"sqlite:///{tmp_path}/itan.db")
    await reader.open()
    assert await reader.summaries("", 10) == [("s", None)]
    await reader.close()
    await store.open()
    await put(store, s=b"new")
    assert await store.find_summaries(["s"]) == {"s": b"new"}
    await store.close()
