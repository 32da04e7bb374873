"""What the SQLite store alone promises: one process a file, no half writes, and recovery from a bad disk."""

import asyncio
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from app.storage import Entry, Position, Remains, Snapshot, StoreCorrupt, StoreError, StoreUnavailable, StreamSize
from app.storage.sqlite import SqliteReader, SqliteStore, compaction, schema, writes

START = Snapshot(Position(0, 0), b"start")
WRITER = Path(__file__).with_name("store_writer.py")
READER = Path(__file__).with_name("read_only_opener.py")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "itan.db"


@pytest.fixture
async def sqlite_store(path):
    store = SqliteStore(path, busy_seconds=0.02)
    await store.open()
    await store.create("s", START)
    yield store
    await store.close()


def one(seq: int, body: bytes = b"body") -> Entry:
    return Entry(Position(seq, 0), body, seq, (f"id {seq}",))


async def load_all(store) -> tuple:
    return await store.load("s"), await store.entries("s", Position(0, 0), 1000), await store.size("s")


async def test_a_second_owner_is_refused_by_name(sqlite_store, path):
    second = SqliteStore(path)
    with pytest.raises(StoreUnavailable, match=r"process [0-9]+ is using it"):
        await second.open()
    await sqlite_store.append("s", Position(0, 0), one(1))
    await sqlite_store.close()
    await second.open()
    assert (await second.size("s")).log_entries == 1
    await second.close()


def start_writer(path: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, str(WRITER), f"sqlite:///{path}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def test_a_second_process_is_refused_until_the_first_is_killed(path):
    first = start_writer(path)
    assert first.stdout.readline() == "3\n"
    second = start_writer(path)
    _, complaint = second.communicate()
    assert second.returncode != 0
    assert f"process {first.pid} is using it" in complaint
    first.kill()
    first.communicate()
    store = SqliteStore(path)
    await store.open()
    await store.close()


async def test_kill_9_keeps_what_was_acknowledged_and_no_half(path):
    acknowledged = 0
    for turn in range(3):
        writer = start_writer(path)
        for _ in range(20 + 17 * turn):
            acknowledged = int(writer.stdout.readline())
        writer.kill()
        # communicate would leave out the lines that readline has in its buffer
        acknowledged = int([acknowledged, *writer.stdout.read().split()][-1])
        writer.communicate()
        store = SqliteStore(path)
        await store.open()
        (_, head), log, size = await load_all(store)
        assert acknowledged <= head.seq <= acknowledged + 3
        assert [entry.position.seq for entry in log] == list(range(3, head.seq + 1, 3))
        assert size == StreamSize(len(log), sum(len(entry.body) for entry in log), 5)
        ids = {f"id {seq}": seq + 1 for seq in range(0, head.seq, 3)}
        assert (await store.find_ids("s", [*ids, f"id {head.seq}"])).seqs == ids
        await store.close()


async def test_a_lock_held_from_outside_is_unavailable_then_over(sqlite_store, path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        await sqlite_store.append("s", Position(0, 0), one(1))
    with pytest.raises(StoreUnavailable, match="locked"):
        await sqlite_store.check()
    assert await load_all(sqlite_store) == ((START, Position(0, 0)), [], StreamSize(0, 0, 5))
    other.execute("ROLLBACK")
    other.close()
    await sqlite_store.append("s", Position(0, 0), one(1))
    assert await sqlite_store.check() == []


async def set_pragma(store: SqliteStore, pragma: str) -> None:
    await store.writer.run(lambda connection: connection.execute(f"PRAGMA {pragma}").fetchall())


async def test_a_read_only_file_is_unavailable_then_over(sqlite_store):
    await set_pragma(sqlite_store, "query_only = ON")
    for write in (
        sqlite_store.append("s", Position(0, 0), one(1)),
        sqlite_store.create("t", START),
        sqlite_store.delete("s"),
        sqlite_store.check(),
    ):
        with pytest.raises(StoreUnavailable, match="readonly"):
            await write
    assert await load_all(sqlite_store) == ((START, Position(0, 0)), [], StreamSize(0, 0, 5))
    sqlite_store.writer.begin = "BEGIN"  # what only sets a pragma need not write
    await set_pragma(sqlite_store, "query_only = OFF")
    await sqlite_store.append("s", Position(0, 0), one(1))


@pytest.fixture
def open_folder():
    """A folder that every user can use, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


async def make_database(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.close()


@pytest.mark.parametrize("read_only", ["itan.db", "itan.db.lock"])
def test_a_file_that_may_not_be_written_is_unavailable(open_folder, read_only):
    path = open_folder / "itan.db"
    asyncio.run(make_database(path))
    for file in (path, path.with_name("itan.db.lock")):
        file.chmod(0o444 if file.name == read_only else 0o666)
    command = [sys.executable, str(READER), str(path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("unavailable")
    assert "readonly" in answer.stdout or "Permission denied" in answer.stdout


async def test_a_full_disk_is_unavailable_until_something_is_deleted(sqlite_store):
    await sqlite_store.create("filler", Snapshot(Position(0, 0), bytes(400_000)))
    await set_pragma(sqlite_store, "max_page_count = 150")
    with pytest.raises(StoreUnavailable, match="full"):
        await sqlite_store.append("s", Position(0, 0), one(1, bytes(300_000)))
    assert await load_all(sqlite_store) == ((START, Position(0, 0)), [], StreamSize(0, 0, 5))
    assert (await sqlite_store.find_ids("s", ["id 1"])).seqs == {}
    assert await sqlite_store.delete("filler")
    await sqlite_store.append("s", Position(0, 0), one(1, bytes(300_000)))


async def test_a_failure_in_a_group_leaves_its_neighbours_alone(sqlite_store):
    names = [f"t{number}" for number in range(40)]
    for name in names[::2]:
        await sqlite_store.create(name, START)
    outcomes = await asyncio.gather(
        *(sqlite_store.append(name, Position(0, 0), one(1)) for name in names), return_exceptions=True
    )
    assert [outcome is None for outcome in outcomes] == [True, False] * 20
    assert [(await sqlite_store.size(name)).log_entries for name in names[::2]] == [1] * 20


def write_and_fail(connection):
    connection.execute("DELETE FROM streams")
    raise ZeroDivisionError


async def test_a_bug_in_one_operation_reaches_its_caller_alone(sqlite_store):
    outcomes = await asyncio.gather(
        sqlite_store.writer.run(write_and_fail),
        sqlite_store.append("s", Position(0, 0), one(1)),
        return_exceptions=True,
    )
    assert isinstance(outcomes[0], ZeroDivisionError)
    assert (await sqlite_store.size("s")).log_entries == 1


async def test_foreign_and_newer_files_are_refused(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (title)")
    connection.close()
    with pytest.raises(StoreError, match="another program"):
        await SqliteStore(path).open()
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreCorrupt, match="not a database"):
        await SqliteStore(path).open()


async def test_a_folder_that_is_not_there_may_come_later(tmp_path):
    store = SqliteStore(tmp_path / "later" / "itan.db")
    with pytest.raises(StoreUnavailable, match="No such file"):
        await store.open()
    (tmp_path / "later").mkdir()
    await store.open()
    assert await store.create("s", START)
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.load("s")


@pytest.mark.parametrize(
    ("damage", "gap"),
    [
        ("DELETE FROM snapshots", "snapshot is missing"),
        ("DELETE FROM log", "log from the snapshot at 0-0 to the head at 3-0 is missing"),
        ("DELETE FROM log WHERE seq = 1", "snapshot ends at 0-0, the log goes on at 2"),
        ("DELETE FROM log WHERE seq = 3", "log ends at 2-0, its head should be 3-0"),
    ],
)
async def test_a_gap_is_named(sqlite_store, path, damage, gap):
    for seq in range(3):
        await sqlite_store.append("s", Position(seq, 0), one(seq + 1))
    with sqlite3.connect(path) as other:
        other.execute(damage)
    other.close()
    with pytest.raises(StoreCorrupt, match=gap):
        await sqlite_store.load("s")
    assert not await sqlite_store.create("s", START)
    assert await sqlite_store.delete("s")
    assert await sqlite_store.create("s", START)


async def test_rows_of_a_deleted_stream_are_removed_even_after_a_crash(sqlite_store, path):
    for seq in range(3):
        await sqlite_store.append("s", Position(seq, 0), one(seq + 1), {seq + 1: b"label"})
    with sqlite3.connect(path) as other:  # as if the process had ended between the deletion and the clean-up
        other.execute("INSERT INTO doomed SELECT number FROM streams")
        other.execute("DELETE FROM streams")
    other.close()
    await sqlite_store.close()
    await sqlite_store.open()
    with sqlite3.connect(path) as other:
        left = [other.execute(f"SELECT * FROM {table}").fetchall() for table in ("log", "ids", "labels", "snapshots")]
    other.close()
    assert left == [[], [], [], []]


async def test_the_write_ahead_file_shrinks_after_a_long_reader(sqlite_store, path, monkeypatch):
    monkeypatch.setattr("app.storage.sqlite.store.LONG_WAL_BYTES", 200_000)
    monkeypatch.setattr("app.storage.sqlite.watch.CHECKPOINT_BYTES", 100_000)
    monkeypatch.setattr("app.storage.sqlite.watch.AGAIN_SECONDS", 0.0)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM streams").fetchall()
    for seq in range(200):
        await sqlite_store.append("s", Position(seq, 0), one(seq + 1, bytes(50_000)))
    assert sqlite_store.wal_bytes() > 9_000_000
    assert "long reader" in (await sqlite_store.check())[0]
    reader.execute("ROLLBACK")
    reader.close()
    for seq in range(200, 202):
        await sqlite_store.append("s", Position(seq, 0), one(seq + 1, bytes(50_000)))
    assert sqlite_store.wal_bytes() <= 200_000
    assert await sqlite_store.check() == []


@pytest.fixture
def stored(tmp_path):
    """A bare connection with the tables, and a stream of twelve batches of a thousand samples with ids."""
    connection = sqlite3.connect(tmp_path / "bare.db", isolation_level=None)
    connection.executescript(schema.SCHEMA)
    connection.execute("BEGIN")
    writes.create(connection, "s", START)
    for last in range(1000, 13_000, 1000):
        ids = tuple(f"id {seq}" for seq in range(last - 999, last + 1))
        entry = Entry(Position(last, 0), b"body", last - 999, ids)
        writes.append(
            connection, "s", Position(last - 1000, 0), entry, dict.fromkeys(range(last - 999, last + 1), b"l")
        )
    yield connection
    connection.close()


def count_rows(connection: sqlite3.Connection) -> tuple[int, int, int]:
    return tuple(
        connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("log", "ids", "labels")
    )


def test_a_step_of_trimming_ends_with_the_entry_that_makes_it_five_thousand_samples(stored):
    writes.save_snapshot(stored, "s", Snapshot(Position(12_000, 0), b"all"), Position(12_000, 0))
    assert compaction.trim(stored, "s", Position(12_000, 0))
    assert count_rows(stored) == (7, 7000, 7000)
    assert compaction.trim(stored, "s", Position(12_000, 0))
    assert count_rows(stored) == (2, 2000, 2000)


def test_a_step_of_removing_a_stream_takes_five_thousand_ids_or_labels(stored):
    writes.delete(stored, "s")
    steps = []
    while writes.purge(stored):
        steps.append(count_rows(stored))
    assert steps[:3] == [(0, 12_000, 12_000), (0, 7000, 12_000), (0, 2000, 12_000)]
    assert steps[-1] == (0, 0, 0)


async def test_streams_of_a_file_that_did_not_note_changes_count_as_changed_now(sqlite_store, path):
    await sqlite_store.append("s", Position(0, 0), one(1))
    await sqlite_store.close()
    older = sqlite3.connect(path)
    older.execute("ALTER TABLE streams DROP COLUMN changed_at")
    older.close()
    await sqlite_store.open()
    assert (await sqlite_store.silences(["s"]))["s"].seconds < 60
    await sqlite_store.append("s", Position(1, 0), one(2))


async def test_a_file_from_before_there_were_bases_is_used_as_it_is(sqlite_store, path):
    await sqlite_store.append("s", Position(0, 0), one(1))
    await sqlite_store.close()
    older = sqlite3.connect(path)
    older.execute("DROP TABLE bases")
    older.close()
    reader = SqliteReader(path)
    await reader.open()
    assert await reader.inspect("s") == Remains(Position(1, 0), START, None)
    assert (await reader.size("s")).snapshot_bytes == 5
    await reader.close()
    await sqlite_store.open()
    await sqlite_store.save_snapshot("s", Snapshot(Position(1, 0), b"new"), 0)
    assert (await sqlite_store.inspect("s")).base == Snapshot(Position(1, 0), b"new")
