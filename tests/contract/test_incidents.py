"""Every store keeps an index of incidents with the log, and marks of those that have changed."""

import sqlite3
from contextlib import closing

import pytest

from app.storage import (
    INCIDENTS_KEPT,
    NEW,
    Fenced,
    IncidentChange,
    IncidentKey,
    IncidentRow,
    Mark,
    Position,
    Snapshot,
    StaleWriter,
    StreamNotFound,
    open_reader,
    open_store,
)
from tests.contract.test_store import EVERY_BYTE, START, batch, event, fill

FIRST, SECOND = Position(1, 0), Position(2, 0)


def row(seq: int, body: bytes = b"", *, is_news: bool = False) -> IncidentRow:
    return IncidentRow(seq, 1_000_000 + seq, body or b"incident %d" % seq, is_news)


async def append(store, stream: str, seq: int, *rows: IncidentRow) -> None:
    """Append sample number seq, with rows."""
    await store.append(stream, Position(seq - 1, 0), batch(seq, seq), incidents=rows)


async def marks(store) -> list[tuple]:
    return sorted((change.stream, change.seq, change.position) for change in await store.changed_incidents(100))


async def test_an_incident_comes_with_its_event(store):
    await fill(store, "s")
    assert await store.incidents("s") == await store.incidents("none") == []
    await append(store, "s", 1, row(1, EVERY_BYTE))
    assert await store.incidents("s") == [row(1, EVERY_BYTE)]
    await store.append("s", FIRST, event(1, 1), {1: b"label"}, incidents=[row(1, b"labelled")])
    assert await store.incidents("s") == [row(1, b"labelled")]
    assert await store.find_labels("s", [1]) == {1: b"label"}
    assert await store.find_incidents("s", [1, 2, 10**30]) == {1: row(1, b"labelled")}
    assert await store.find_incidents("none", [1]) == {}


async def test_a_refused_append_changes_no_incident(store):
    await fill(store, "s", batch(1, 1))
    await append(store, "s", 2, row(2))
    with pytest.raises(StaleWriter):
        await store.append("s", FIRST, batch(2, 3), incidents=[row(2, b"other"), row(3)])
    with pytest.raises(StreamNotFound):
        await store.append("none", FIRST, batch(2, 2), incidents=[row(2)])
    assert await store.incidents("s") == [row(2)]
    await append(store, "s", 2, row(2))  # the answer to the first was lost
    assert await store.incidents("s") == [row(2)]


@pytest.mark.parametrize("wrong", [[row(0)], [row(2**53)], [IncidentRow(1, -1, b"")], [row(1)] * (INCIDENTS_KEPT + 1)])
async def test_rows_that_some_store_could_not_keep_are_refused(store, wrong):
    await fill(store, "s")
    with pytest.raises(ValueError, match="incidents"):
        await append(store, "s", 1, *wrong)
    with pytest.raises(ValueError, match="incidents"):
        await store.put_incidents("s", wrong)
    assert (await store.load("s"))[1] == START.position


async def test_the_newest_incidents_are_kept(store):
    await fill(store, "s")
    kept = [row(seq) for seq in range(9, 9 + INCIDENTS_KEPT)]
    await store.append("s", START.position, batch(1, 2000), incidents=[row(8), *kept[:-2]])
    assert (await store.incidents("s"))[0] == row(8)
    await store.append("s", Position(2000, 0), batch(2001, 2001), incidents=kept[-2:])
    assert await store.incidents("s") == kept
    await store.put_incidents("s", [row(3)])
    assert await store.incidents("s") == kept


async def test_incidents_can_be_put_without_an_event(store):
    await fill(store, "s", batch(1, 9))
    await store.put_incidents("s", [row(3), row(2)])
    await store.put_incidents("s", [row(3, b"again", is_news=True)])
    assert await store.incidents("s") == [row(2), row(3, b"again")]
    assert await marks(store) == []
    assert await store.newest_incidents(None, 9) == [IncidentKey(1_000_003, "s", 3), IncidentKey(1_000_002, "s", 2)]
    with pytest.raises(StreamNotFound):
        await store.put_incidents("none", [row(3)])


async def test_only_the_newest_holder_of_the_lease_puts_incidents(store):
    await fill(store, "s")
    old, new = [await store.acquire("s", "a", 10.0) for _ in range(2)]
    await store.put_incidents("s", [row(1)], new)
    if not store.is_exclusive:
        with pytest.raises(Fenced):
            await store.put_incidents("s", [row(2)], old)
        assert await store.incidents("s") == [row(1)]


async def test_incidents_of_all_streams_are_listed_newest_first(store):
    for stream in ("a", "a.b", "b"):
        await fill(store, stream)
        await append(store, stream, 1, row(1))
        await append(store, stream, 2, row(2), row(1, b"changed"))
    listed = [(key.seq, key.stream) for key in await store.newest_incidents(None, 10)]
    assert listed == [(2, "b"), (2, "a.b"), (2, "a"), (1, "b"), (1, "a.b"), (1, "a")]
    after, pages = None, []
    while page := await store.newest_incidents(after, 2):
        after = page[-1]
        pages += [(key.seq, key.stream) for key in page]
    assert pages == listed
    gone = IncidentKey(1_000_002, "a.a", 7)  # a place is a place, whether or not anything is there
    assert [(key.seq, key.stream) for key in await store.newest_incidents(gone, 2)] == [(2, "a"), (1, "b")]


async def test_a_change_is_marked_until_it_is_forgotten(store):
    await fill(store, "s")
    await append(store, "s", 1, row(1, is_news=True))
    await append(store, "s", 2, row(1, b"quiet"), row(2, is_news=True))
    assert await store.incidents("s") == [row(1, b"quiet"), row(2)]
    assert await marks(store) == [("s", 1, FIRST), ("s", 2, SECOND)]
    read = await store.changed_incidents(100)
    assert await store.changed_incidents(1) == read[:1]
    await append(store, "s", 3, row(1, is_news=True))
    await store.move_changes([Mark(NEW, change) for change in read])
    await store.move_changes([Mark(NEW, change) for change in [*read, IncidentChange(5, "none", 1, FIRST)]])
    assert await marks(store) == [("s", 1, Position(3, 0))]
    await store.delete("s")
    assert await marks(store) == [("s", 1, Position(3, 0))]


async def test_marks_wait_in_lanes(store):
    await fill(store, "s")
    await append(store, "s", 1, row(1, is_news=True))
    (new,) = await store.changed_incidents(9)
    others = [IncidentChange(time, "s", 1, FIRST) for time in range(3)]
    come = [Mark("a:x", new), Mark("a:y", new), *(Mark("a:x", other) for other in others)]
    for _ in range(2):  # the answer to the first was lost
        await store.move_changes([Mark(NEW, new)], come)
    assert await store.changed_incidents(9) == []
    assert await store.changed_incidents(9, "a:x") == [*others, new]
    assert await store.changed_incidents(2, "a:x", others[0]) == others[1:]
    assert [await store.count_changes(lane) for lane in (NEW, "a:x", "a:y", "a:", "a:xy")] == [0, 4, 1, 0, 0]
    await append(store, "s", 2, row(2, is_news=True))
    assert (await store.count_changes(), await store.count_changes("a:x")) == (1, 4)
    await store.move_changes([Mark("a:x", new), Mark("a:x", others[1])])
    assert await store.changed_incidents(9, "a:x") == [others[0], others[2]]
    assert await store.changed_incidents(9, "a:y") == [new]


async def test_an_event_is_never_without_its_mark(store):
    await fill(store, "s", batch(1, 1))
    with pytest.raises(StaleWriter):
        await store.append("s", START.position, batch(1, 5), incidents=[row(5, is_news=True)])
    left = await marks(store)
    assert left in ([], [("s", 5, Position(5, 0))])  # a mark without its event is allowed


@pytest.mark.parametrize("change", ["delete", "replace", "restore"])
async def test_a_stream_that_begins_anew_has_no_incidents(store, change):
    for stream in ("s", "t"):
        await fill(store, stream)
        await append(store, stream, 1, row(1))
    later = Snapshot(Position(1, 1), b"later")
    await {
        "delete": lambda: store.delete("s"),
        "replace": lambda: store.replace("s", FIRST, later),
        "restore": lambda: store.restore("s", later),
    }[change]()
    await store.create("s", START)
    assert await store.incidents("s") == []
    assert await store.find_incidents("s", [1]) == {}
    assert await store.incidents("t") == [row(1)]
    assert IncidentKey(1_000_001, "t", 1) in await store.newest_incidents(None, 10)


async def test_trimming_leaves_incidents(store):
    await fill(store, "s")
    await append(store, "s", 1, row(1))
    await store.append("s", FIRST, batch(2, 9))
    await store.save_snapshot("s", Snapshot(Position(9, 0), b"nine"), 9)
    assert await store.entries_holding("s", [1]) == []
    assert await store.incidents("s") == [row(1)]


async def test_incidents_outlive_the_store(lasting_url):
    opened = open_store(lasting_url)
    await opened.open()
    await fill(opened, "s")
    await append(opened, "s", 1, row(1, is_news=True))
    await opened.close()
    for make in (open_reader, open_store):
        opened = make(lasting_url)
        await opened.open()
        assert await opened.incidents("s") == [row(1)]
        assert await marks(opened) == [("s", 1, FIRST)]
        assert len(await opened.newest_incidents(None, 10)) == 1
        await opened.close()


async def test_an_older_file_has_no_incidents_until_it_is_written(tmp_path):
    path, url = tmp_path / "old.db", f"sqlite:///{tmp_path}/old.db"
    opened = open_store(url)
    await opened.open()
    await fill(opened, "s")
    await opened.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE incidents")
        connection.execute("DROP TABLE incident_changes")
    for make in (open_reader, open_store, open_reader):
        opened = make(url)
        await opened.open()
        assert await opened.incidents("s") == await opened.newest_incidents(None, 9) == await marks(opened) == []
        await opened.close()
