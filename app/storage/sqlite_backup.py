"""A backup: an SQLite file that holds what a store held, with a digest of each stream, and needs no file beside it."""

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

from app.storage import sqlite_verbs as verbs
from app.storage.base import StoreCorrupt, StoreError
from app.storage.sqlite import SqliteReader, SqliteStore, make_tables

# Not that of a store: a service would change it.
BACKUP_ID = int.from_bytes(b"itab")
SCHEMA = """
CREATE TABLE digests (stream TEXT PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""


class BackupReader(SqliteReader):
    """Reads a backup, also from a disk that cannot be written to."""

    application_id = BACKUP_ID
    mode = "ro&immutable=1"

    async def open(self) -> None:
        """Make sure that SQLite finds no damage; digests tell of what it cannot find."""
        await super().open()
        try:
            damage = await self._reader.run(find_damage)
            if damage:
                raise StoreCorrupt(None, f"{self._path} is damaged: {damage}")
        except BaseException:
            await self.close()
            raise

    async def digests(self, after: str, limit: int) -> list[tuple[str, bytes]]:
        """Give the names of its streams, in order, and what they held."""
        return await self._reader.run(partial(read_digests, after=after, limit=limit))

    async def about(self) -> dict[str, object]:
        """Say when and of what it was made."""
        return await self._reader.run(lambda connection: dict(connection.execute("SELECT name, value FROM about")))


class BackupWriter(SqliteStore):
    """Writes the streams of a backup, also to a network's disk, where there can be no write-ahead file."""

    def _connect_writer(self) -> sqlite3.Connection:
        connection = self._connect("rwc")
        make_tables(connection)
        connection.executescript(verbs.CENSUS)
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("PRAGMA synchronous = OFF")  # what a crash leaves is no backup
        return connection


class BareReader(SqliteReader):
    """Reads the database of a store without its -wal, as far as it goes."""

    mode = "ro&immutable=1"

    async def open(self) -> None:
        """Take it as it is."""
        self._resolve()
        await self._reader.start()


def is_backup(path: Path) -> bool:
    """Tell a backup from all other files."""
    try:
        with path.open("rb") as file:
            header = file.read(72)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    return header.startswith(b"SQLite format 3\0") and int.from_bytes(header[68:72]) == BACKUP_ID


def seal(path: Path, digests: Mapping[str, bytes], about: Mapping[str, object]) -> None:
    """Make a backup of a store that is closed, and make sure that it is on the disk."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(f"BEGIN; {SCHEMA}")
        connection.executemany("INSERT INTO digests VALUES (?, ?)", digests.items())
        connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())
        connection.execute(f"PRAGMA application_id = {BACKUP_ID}")
        connection.execute("COMMIT")
    sync(path)


def sync(path: Path) -> None:
    """Wait until a file, or what a folder lists, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def find_damage(connection: sqlite3.Connection) -> str:
    """Say what SQLite finds wrong with a file; a file that was cut is refused by whatever reads it first."""
    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    return "" if found == "ok" else str(found)


def read_digests(connection: sqlite3.Connection, after: str, limit: int) -> list[tuple[str, bytes]]:
    """Read a page of digests."""
    rows = connection.execute(
        "SELECT stream, digest FROM digests WHERE stream > ? ORDER BY stream LIMIT ?", (after, limit)
    )
    return list(rows)
