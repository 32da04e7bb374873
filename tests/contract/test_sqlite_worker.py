"""The thread of the SQLite store: who waits for it, and how long."""

import sqlite3
import threading

import pytest

from app.storage import StoreUnavailable
from app.storage.sqlite.worker import SqliteWorker

PATIENCE_SECONDS = 0.05


@pytest.fixture
async def worker(tmp_path):
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(tmp_path / "t.db", isolation_level=None)
        connection.execute("CREATE TABLE kept (name TEXT)")
        return connection

    worker = SqliteWorker(connect, "BEGIN IMMEDIATE", PATIENCE_SECONDS)
    await worker.start()
    yield worker
    await worker.stop()


def names(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM kept")]


def keep(name: str):
    return lambda connection: connection.execute("INSERT INTO kept VALUES (?)", (name,)) and None


def keep_and_fail(connection: sqlite3.Connection) -> None:
    keep("half")(connection)
    raise KeyError("half")


async def hang(worker: SqliteWorker) -> threading.Event:
    """Keep the thread until the event is set; on a busy machine the wait may end before the thread has begun."""
    begun, disk = threading.Event(), threading.Event()
    while not begun.is_set():
        with pytest.raises(StoreUnavailable, match=r"no answer from the disk in 0\.05 s"):
            await worker.run(lambda _: begun.set() or disk.wait())
    return disk


async def test_who_waits_for_a_disk_that_hangs_is_told_and_what_waited_is_not_done_later(worker):
    disk = await hang(worker)
    with pytest.raises(StoreUnavailable):
        await worker.run(keep("given up"))
    disk.set()
    assert await worker.run(names) == []


async def test_a_thread_that_hangs_does_not_hold_up_the_end(worker):
    disk = await hang(worker)
    await worker.stop()
    with pytest.raises(StoreUnavailable, match="closed"):
        await worker.run(names)
    disk.set()


async def test_an_operation_that_fails_alone_leaves_nothing(worker):
    with pytest.raises(KeyError):
        await worker.run(keep_and_fail)
    assert await worker.run(names) == []
