"""What others may do to the files of an SQLite store: nothing is acknowledged that would not be found again."""

import asyncio
import os
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from app.storage import Cause, Entry, Position, Snapshot, StoreCorrupt, StoreUnavailable
from app.storage.sqlite import SqliteReader, SqliteStore, wal
from app.storage.sqlite.wal import read_record, read_salt, refuse_mismatch
from tests.contract.test_store_sqlite import WRITER, set_pragma

START = Snapshot(Position(0, 0), b"start")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "itan.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(path)
    await opened.open()
    await opened.create("s", START)
    yield opened
    await opened.close()


async def append(store: SqliteStore, seq: int, size: int = 100) -> None:
    await store.append("s", Position(seq - 1, 0), Entry(Position(seq, 0), bytes(size), seq, (f"id {seq}",)))


def ahead_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def spell(path: Path, how: str) -> str:
    """Give another path to the same file."""
    folder = path.parent
    other = folder / "other"
    match how:
        case "link":
            other.symlink_to(path)
        case "chain":
            (folder / "first").symlink_to("itan.db")
            other.symlink_to("first")
        case "folder":
            (folder / "linked").symlink_to(folder)
            other = folder / "linked" / "itan.db"
        case "hard link":
            os.link(path, other)
        case "dots":
            (folder / "deep").mkdir()
            other = folder / "deep" / ".." / "itan.db"
        case "relative":
            return os.path.relpath(path)
        case "slashes":
            return f"{folder}//.//itan.db"
    return str(other)


async def complaint_of_second(spelling: str, *descriptors: int) -> str:
    """Let another process try to open the store, and give what it says."""
    command = [sys.executable, str(WRITER), f"sqlite:///{spelling}"]
    second = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, pass_fds=descriptors)
    _, said = await asyncio.wait_for(second.communicate(), 60)
    assert second.returncode != 0
    return said.decode()


@pytest.mark.parametrize("how", ["link", "chain", "folder", "hard link", "dots", "relative", "slashes"])
async def test_a_file_has_one_owner_whatever_path_leads_to_it(store, path, how):
    complaint = await complaint_of_second(spell(path, how))
    holder = "another process" if how == "hard link" else f"process {os.getpid()}"
    assert f"{holder} is using it" in complaint
    await append(store, 1)


async def test_an_open_descriptor_is_a_path_too(store, path):
    with path.open("rb") as file:
        complaint = await complaint_of_second(f"/dev/fd/{file.fileno()}", file.fileno())
    assert f"process {os.getpid()} is using it" in complaint


async def test_a_link_is_followed_to_where_the_other_files_are(store, path, tmp_path):
    await append(store, 1)
    await store.close()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "itan.db").symlink_to(path)
    linked = SqliteStore(elsewhere / "itan.db")
    await linked.open()
    await append(linked, 2)
    assert [file.name for file in elsewhere.iterdir()] == ["itan.db"]
    await linked.close()


def remove_all(path: Path) -> None:
    for name in ("itan.db", "itan.db-wal", "itan.db-shm"):
        path.with_name(name).unlink()


def replace_by_another(path: Path) -> None:
    path.rename(path.with_name("old.db"))
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE t (x)")


def overwrite(path: Path) -> None:
    """As `cp` does: the file stays, with other bytes in it."""
    copy = path.with_name("copy.db")
    with closing(sqlite3.connect(copy)) as other:
        other.execute("CREATE TABLE t (x)")
        other.execute("INSERT INTO t VALUES (zeroblob(200000))")
        other.commit()
    path.write_bytes(copy.read_bytes())


CHANGES = {
    "all removed": (remove_all, r"itan\.db was removed"),
    "database removed": (Path.unlink, r"itan\.db was removed"),
    "database moved": (lambda path: path.rename(path.with_name("old.db")), r"itan\.db was removed"),
    "database replaced": (replace_by_another, r"itan\.db is another file"),
    "database emptied": (lambda path: os.truncate(path, 0), r"itan\.db was cut to 0 bytes"),
    "database cut": (lambda path: os.truncate(path, 8192), r"itan\.db was cut to 8192 bytes"),
    "database overwritten": (overwrite, r"itan\.db was overwritten"),
    "-wal removed": (lambda path: ahead_of(path).unlink(), r"itan\.db-wal was removed"),
    "-wal moved": (lambda path: ahead_of(path).rename(path.with_name("old-wal")), r"itan\.db-wal was removed"),
    "-wal replaced": (
        lambda path: Path(shutil.copy(ahead_of(path), path.with_name("copy"))).replace(ahead_of(path)),
        r"itan\.db-wal is another file",
    ),
    "-wal emptied": (lambda path: os.truncate(ahead_of(path), 0), r"itan\.db-wal was cut to 0 bytes"),
    "-wal cut": (lambda path: os.truncate(ahead_of(path), 5000), r"itan\.db-wal was cut to 5000 bytes"),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_nothing_is_acknowledged_once_the_files_are_others(store, path, change):
    for seq in range(1, 30):
        await append(store, seq)
    harm, reason = CHANGES[change]
    harm(path)
    for write in (append(store, 30), store.create("t", START), store.check()):
        with pytest.raises(StoreUnavailable, match=reason) as caught:
            await write
        assert caught.value.cause is Cause.REPLACED


async def test_a_file_that_is_changed_while_it_is_written_is_not_acknowledged(store, path):
    def write(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM snapshots")
        path.rename(path.with_name("old.db"))

    with pytest.raises(StoreUnavailable, match="was removed"):
        await store.writer.run(write)


@pytest.mark.parametrize("cut_to", [0, 32, 5000])
async def test_a_wal_that_is_cut_while_it_is_written_is_not_acknowledged(store, path, cut_to):
    def write(connection: sqlite3.Connection) -> None:
        os.truncate(ahead_of(path), cut_to)
        connection.execute("CREATE TABLE another (name)")  # what SQLite writes now lies behind a hole of zeros

    for seq in range(1, 30):
        await append(store, seq)
    database = path.read_bytes()
    with pytest.raises(StoreUnavailable, match=r"itan\.db-wal was cut to") as caught:
        await store.writer.run(write)
    assert caught.value.cause is Cause.REPLACED
    await store.close()
    assert path.read_bytes() == database


@pytest.mark.parametrize("change", ["database removed", "-wal removed", "-wal emptied"])
async def test_an_error_of_sqlite_that_a_change_of_the_files_explains_names_it(store, path, change):
    harm, reason = CHANGES[change]

    def write(connection: sqlite3.Connection) -> None:
        harm(path)
        raise sqlite3.OperationalError("disk I/O error")

    await append(store, 1)
    with pytest.raises(StoreUnavailable, match=reason) as caught:
        await store.writer.run(write)
    assert caught.value.cause is Cause.REPLACED


@pytest.mark.parametrize("error", [sqlite3.OperationalError, sqlite3.DatabaseError])
async def test_a_read_that_fails_because_the_files_changed_says_so(store, path, monkeypatch, error):
    harm, reason = CHANGES["-wal emptied"]

    def fail(connection: sqlite3.Connection, **_: object) -> None:
        harm(path)
        raise error("cannot be read")

    await append(store, 1)
    monkeypatch.setattr("app.storage.sqlite.reads.find_ids", fail)
    with pytest.raises(StoreUnavailable, match=reason) as caught:
        await store.find_ids("s", ["a"])
    assert caught.value.cause is Cause.REPLACED


async def test_a_read_that_fails_for_another_reason_says_that(store, monkeypatch):
    def fail(connection: sqlite3.Connection, **_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    await append(store, 1)
    monkeypatch.setattr("app.storage.sqlite.reads.find_ids", fail)
    with pytest.raises(StoreUnavailable, match="SQLite: disk I/O error"):
        await store.find_ids("s", ["a"])
    await append(store, 2)


async def test_an_error_of_sqlite_alone_is_told_as_it_is(store):
    def write(connection: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with pytest.raises(StoreUnavailable, match="SQLite: disk I/O error") as caught:
        await store.writer.run(write)
    assert caught.value.cause is Cause.FAILED
    await append(store, 1)


async def test_a_file_that_comes_back_is_used_again(store, path):
    path.rename(path.with_name("old.db"))
    with pytest.raises(StoreUnavailable):
        await append(store, 1)
    path.with_name("old.db").rename(path)
    await append(store, 1)
    assert await store.check() == []


async def test_what_only_the_process_can_still_read_is_saved(store, path):
    for seq in range(1, 30):
        await append(store, seq)
    assert read_record(path).is_needed
    ahead_of(path).unlink()
    with pytest.raises(StoreUnavailable, match="all that was acknowledged is in the database: restart"):
        await store.check()
    shutil.copy(path, path.with_name("saved.db"))
    saved = SqliteStore(path.with_name("saved.db"))
    await saved.open()
    assert (await saved.size("s")).log_entries == 29
    await saved.close()


def put_in_place(folder: Path, path: Path) -> None:
    for name in ("itan.db", "itan.db-wal", "itan.db-shm"):
        Path(shutil.copy(folder / name, path.with_name(name + ".new"))).replace(path.with_name(name))


async def test_the_end_of_a_store_leaves_another_ones_files_alone(store, path, tmp_path):
    await append(store, 1)
    folder = tmp_path / "new"
    folder.mkdir()
    new = SqliteStore(folder / "itan.db")
    await new.open()
    await new.create("n", START)
    put_in_place(folder, path)
    await new.close()
    with pytest.raises(StoreUnavailable):
        await append(store, 2)
    await store.close()
    again = SqliteStore(path)
    await again.open()
    assert await again.streams("", 9) == ["n"]
    await again.close()


def copy_all(path: Path, folder: Path, *names: str) -> Path:
    """Copy files as a crash would leave them."""
    folder.mkdir()
    for name in names:
        shutil.copy(path.with_name(name), folder / name)
    return folder / "itan.db"


async def test_both_files_of_a_crash_are_a_store_and_each_alone_is_none(store, path, tmp_path):
    for seq in range(1, 30):
        await append(store, seq)
    whole = SqliteStore(copy_all(path, tmp_path / "whole", "itan.db", "itan.db-wal"))
    await whole.open()
    assert (await whole.size("s")).log_entries == 29
    await whole.close()
    for name, what in (
        ("itan.db", r"itan\.db-wal is missing or empty"),
        ("itan.db-wal", r"itan\.db is missing or empty"),
    ):
        alone = copy_all(path, tmp_path / f"only {name}", name)
        for opened in (SqliteStore(alone), SqliteReader(alone)):
            with pytest.raises(StoreCorrupt, match=what):
                await opened.open()


async def test_a_write_ahead_file_of_another_store_is_refused(store, path, tmp_path):
    for seq in range(1, 30):
        await append(store, seq)
    other = SqliteStore(tmp_path / "other.db")
    await other.open()
    await other.create("o", START)
    await other.close()
    mixed = copy_all(path, tmp_path / "mixed", "itan.db-wal")
    shutil.copy(tmp_path / "other.db", mixed)
    with pytest.raises(StoreCorrupt, match="was written for another file"):
        await SqliteStore(mixed).open()
    ahead_of(mixed).unlink()
    again = SqliteStore(mixed)
    await again.open()
    assert await again.streams("", 9) == ["o"]
    await again.close()


async def test_a_shell_that_tidies_up_after_a_crash_is_no_fault(store, path, tmp_path):
    for seq in range(1, 30):
        await append(store, seq)
    crashed = copy_all(path, tmp_path / "crashed", "itan.db", "itan.db-wal")
    with closing(sqlite3.connect(crashed)) as shell:
        assert shell.execute("SELECT count(*) FROM log").fetchone() == (29,)
    assert not ahead_of(crashed).exists()
    again = SqliteStore(crashed)
    await again.open()
    assert (await again.size("s")).log_entries == 29
    await again.close()


async def test_files_that_are_just_being_closed_are_no_mismatch(store, path, tmp_path, monkeypatch):
    await append(store, 1)
    bare = copy_all(path, tmp_path / "bare", "itan.db")
    await store.close()
    monkeypatch.setattr("app.storage.sqlite.wal.sleep", lambda _: shutil.copy(path, bare))
    refuse_mismatch(bare)


@pytest.mark.parametrize("pragma", ["wal_checkpoint(TRUNCATE)", "wal_checkpoint(RESTART)", "wal_checkpoint(FULL)"])
async def test_a_shell_may_tidy_up_a_running_store(store, path, tmp_path, pragma):
    for seq in range(1, 40):
        await append(store, seq)
        with closing(sqlite3.connect(path)) as shell:
            assert shell.execute(f"PRAGMA {pragma}").fetchone()[0] == 0
    await append(store, 40)
    await store.check()
    crashed = SqliteStore(copy_all(path, tmp_path / "crashed", "itan.db", "itan.db-wal"))
    await crashed.open()
    assert (await crashed.size("s")).log_entries == 40
    await crashed.close()


async def test_a_shell_may_vacuum_a_running_store(store, path):
    await store.create("filler", Snapshot(Position(0, 0), bytes(1_000_000)))
    await store.delete("filler")
    with closing(sqlite3.connect(path, isolation_level=None)) as shell:
        shell.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before = path.stat().st_size
        shell.execute("VACUUM")
        shell.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert path.stat().st_size < before / 2
    await append(store, 1)
    assert await store.check() == []


async def test_checkpoints_keep_both_files_in_step(store, path, tmp_path, monkeypatch):
    crashes = []

    def crash() -> Path:
        crashes.append(seq)
        return copy_all(path, tmp_path / str(len(crashes)), "itan.db", "itan.db-wal")

    def checkpoint(connection: sqlite3.Connection) -> bool:
        crash()
        is_done = copy_ahead(connection)
        crash()
        return is_done

    copy_ahead = wal.checkpoint
    monkeypatch.setattr("app.storage.sqlite.watch.CHECKPOINT_BYTES", 50_000)
    monkeypatch.setattr("app.storage.sqlite.wal.checkpoint", checkpoint)
    salt = read_salt(ahead_of(path))
    for seq in range(1, 60):
        await append(store, seq, 10_000)
        await store.check()  # waits for a checkpoint: the two files are not copied in one moment
        assert read_record(crash()).is_needed
    monkeypatch.setattr("app.storage.sqlite.wal.checkpoint", copy_ahead)
    for number, seq in enumerate(crashes, 1):
        again = SqliteStore(tmp_path / str(number) / "itan.db")
        await again.open()
        assert (await again.size("s")).log_entries == seq
        await again.close()
    assert len(crashes) - 59 > 10
    assert read_salt(ahead_of(path)) - salt > 5
    assert store.wal_bytes() < 200_000
    await store.close()
    assert not read_record(path).is_needed
    assert not ahead_of(path).exists()


async def test_a_full_disk_still_checkpoints(store, path, monkeypatch):
    monkeypatch.setattr("app.storage.sqlite.watch.CHECKPOINT_BYTES", 50_000)
    monkeypatch.setattr("app.storage.sqlite.watch.AGAIN_SECONDS", 0.0)
    await store.create("filler", Snapshot(Position(0, 0), bytes(400_000)))
    await set_pragma(store, "max_page_count = 150")
    with pytest.raises(StoreUnavailable, match="full") as caught:
        await append(store, 1, 300_000)
    assert caught.value.cause is Cause.FULL
    await store.delete("filler")
    await append(store, 1, 300_000)
    await store.check()  # its turn comes after the checkpoint
    assert store.wal_bytes() < 100_000


async def test_a_store_that_is_opened_on_a_full_disk_is_read_and_heals(store, path, monkeypatch):
    await append(store, 1)
    await store.close()

    def fail(*_: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    with monkeypatch.context() as full:
        full.setattr("app.storage.sqlite.wal.record_opening", fail)
        await store.open()
        assert (await store.size("s")).log_entries == 1
        for write in (append(store, 2), store.check()):
            with pytest.raises(StoreUnavailable) as caught:
                await write
            assert caught.value.cause is Cause.FULL
    await append(store, 2)
    assert read_record(path).is_needed
    assert await store.check() == []


async def test_a_file_of_an_earlier_version_is_taken_over(store, path):
    await append(store, 1)
    await store.close()
    with closing(sqlite3.connect(path)) as shell:
        shell.execute("DROP TABLE write_ahead")
    await store.open()
    await append(store, 2)
    assert read_record(path).is_needed


async def test_a_reader_sees_what_a_running_store_has_acknowledged_and_leaves_no_trace(store, path):
    await append(store, 1)
    reader = SqliteReader(path)
    await reader.open()
    for seq in range(2, 5):
        await append(store, seq)
        assert len(await reader.entries("s", Position(0, 0), 10)) == seq
    await store.close()
    assert (await reader.size("s")).log_entries == 4
    await reader.close()
    offline = SqliteReader(path)
    await offline.open()
    assert await offline.streams("", 9) == ["s"]
    await offline.close()
    await store.open()
    await append(store, 5)
