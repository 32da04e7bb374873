"""A backup: one SQLite file with everything a store held, and a digest of each stream."""

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

from app.storage.errors import StoreCorrupt, StoreError
from app.storage.sqlite.reader import SqliteReader
from app.storage.sqlite.schema import CENSUS, make_tables
from app.storage.sqlite.store import SqliteStore

# Not the id of a store: no service may open a backup and change it.
BACKUP_ID = int.from_bytes(b"itab")
SCHEMA = """
CREATE TABLE digests (stream TEXT PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""


class BackupReader(SqliteReader):
    """Reads a backup, also from a read-only disk."""

    application_id = BACKUP_ID
    mode = "ro&immutable=1"

    async def open(self) -> None:
        """Check that SQLite finds no damage; the digests show what SQLite cannot find."""
        await super().open()
        try:
            damage = await self._reader.run(find_damage)
            if damage:
                raise StoreCorrupt(None, f"{self.path} is damaged: {damage}")
        except BaseException:
            await self.close()
            raise

    async def digests(self, after: str, limit: int) -> list[tuple[str, bytes]]:
        """Give the names of its streams, in order, with their digests."""
        return await self._reader.run(partial(read_digests, after=after, limit=limit))

    async def about(self) -> dict[str, object]:
        """Say when the backup was made, and of what."""
        return await self._reader.run(lambda connection: dict(connection.execute("SELECT name, value FROM about")))


class BackupWriter(SqliteStore):
    """Writes the streams of a backup, also to a network disk, which allows no write-ahead log."""

    def _connect_writer(self) -> sqlite3.Connection:
        connection = self._connect("rwc")
        make_tables(connection)
        connection.executescript(CENSUS)
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("PRAGMA synchronous = OFF")  # after a crash there is no backup anyway
        return connection


class BareReader(SqliteReader):
    """Reads the database of a store without its -wal, as far as possible."""

    mode = "ro&immutable=1"

    async def open(self) -> None:
        """Open it as it is."""
        self._resolve()
        await self._reader.start()


def is_backup(path: Path) -> bool:
    """Tell whether a file is a backup."""
    try:
        with path.open("rb") as file:
            header = file.read(72)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    return header.startswith(b"SQLite format 3\0") and int.from_bytes(header[68:72]) == BACKUP_ID


def seal(path: Path, digests: Mapping[str, bytes], about: Mapping[str, object]) -> None:
    """Turn a closed store into a backup, and make sure that it is on the disk."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(f"BEGIN; {SCHEMA}")
        connection.executemany("INSERT INTO digests VALUES (?, ?)", digests.items())
        connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())
        connection.execute(f"PRAGMA application_id = {BACKUP_ID}")
        connection.execute("COMMIT")
    sync(path)


def sync(path: Path) -> None:
    """Wait until a file, or the list of a folder, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def find_damage(connection: sqlite3.Connection) -> str:
    """Say what SQLite finds wrong with a file; the first read refuses a truncated file."""
    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    return "" if found == "ok" else str(found)


def read_digests(connection: sqlite3.Connection, after: str, limit: int) -> list[tuple[str, bytes]]:
    """Read a page of digests."""
    rows = connection.execute(
        "SELECT stream, digest FROM digests WHERE stream > ? ORDER BY stream LIMIT ?", (after, limit)
    )
    return list(rows)
