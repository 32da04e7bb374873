"""Checks that a database and a write-ahead log file (-wal) belong together.

Commits stay in the -wal until a checkpoint copies them into the database. Without its -wal the database is an older
store, and SQLite would accept the -wal of any other database. So one row records which -wal the database needs.
A checkpoint leaves `is_needed` true in the database and false in the -wal: copying the whole -wal clears it. `salt`
identifies the -wal; SQLite adds one to it whenever the -wal restarts. `opening` is drawn at random each time the store
is opened.
"""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from secrets import token_bytes
from time import sleep
from typing import NamedTuple
from urllib.parse import quote

from app.storage.errors import StoreCorrupt

SCHEMA = "CREATE TABLE IF NOT EXISTS write_ahead (opening BLOB, is_needed INTEGER NOT NULL, salt INTEGER)"
MAGIC = (0x377F0682, 0x377F0683)
HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24  # it begins with the number of a page, which is never zero
SALTS = 1 << 32
# Others may have restarted the -wal too: each `PRAGMA wal_checkpoint(TRUNCATE)` in a shell does.
MOST_RESTARTS = 16
SETTLE_SECONDS = 0.2


class WalRecord(NamedTuple):
    """What a database records of its -wal."""

    is_needed: bool
    salt: int | None


def wal_path(path: Path) -> Path:
    """Name the -wal of a database."""
    return path.with_name(path.name + "-wal")


def size_of(path: Path) -> int:
    """Give the size of a file in bytes; 0 if there is none."""
    return path.stat().st_size if path.exists() else 0


def refuse_mismatch(path: Path) -> None:
    """Raise StoreCorrupt if a database and its -wal do not belong together. Call it before SQLite opens them."""
    if find_mismatch(path):
        sleep(SETTLE_SECONDS)
        if mismatch := find_mismatch(path):
            raise StoreCorrupt(None, mismatch)


def find_mismatch(path: Path) -> str:
    """Say why a database and its -wal do not belong together; while a service closes them, they may look so."""
    wal = wal_path(path)
    if size_of(path) == 0 and size_of(wal) > 0:
        return f"{path} is missing or empty, but there is {wal}: put back the file it belongs to"
    record, salt = read_record(path), read_salt(wal)
    if record.is_needed and salt is None:
        return f"{wal} is missing or empty, and {path} alone lacks what was written last: put both files back"
    if None not in (record.salt, salt) and (salt - record.salt) % SALTS > MOST_RESTARTS:  # type: ignore[operator]
        return f"{wal} was written for another file than {path}: put back the one it belongs to"
    return ""


def read_record(path: Path) -> WalRecord:
    """Read the record of the database file alone, as if there were no -wal."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?immutable=1", uri=True)) as connection:
            row = connection.execute("SELECT is_needed, salt FROM write_ahead").fetchone()
    except sqlite3.Error:  # written by an older version, or not by SQLite
        row = None
    return WalRecord(bool(row[0]), row[1]) if row else WalRecord(is_needed=False, salt=None)


def read_salt(wal: Path) -> int | None:
    """Read the salt of a -wal; None if it has no header."""
    header = b""
    with suppress(FileNotFoundError), wal.open("rb") as file:
        header = file.read(HEADER_BYTES)
    return int.from_bytes(header[16:20]) if len(header) == HEADER_BYTES and is_wal(header) else None


def is_wal(header: bytes) -> bool:
    """Tell whether a -wal begins with these bytes."""
    return int.from_bytes(header[:4]) in MAGIC


def new_opening() -> bytes:
    """Draw the id of an opening."""
    return token_bytes(16)


def record_opening(connection: sqlite3.Connection, opening: bytes) -> None:
    """Record a new opening, whose -wal is not known yet."""
    connection.execute(SCHEMA)
    connection.execute("REPLACE INTO write_ahead (rowid, opening, is_needed, salt) VALUES (1, ?, 0, NULL)", (opening,))


def mark_needed(connection: sqlite3.Connection, wal: Path) -> None:
    """Record that the database needs its -wal from the next checkpoint on."""
    connection.execute("UPDATE write_ahead SET is_needed = 1")
    connection.execute("UPDATE write_ahead SET salt = ?", (read_salt(wal),))


def mark_not_needed(connection: sqlite3.Connection) -> None:
    """Record in the -wal that the database needs no -wal once all of this one has been copied into it."""
    connection.execute("UPDATE write_ahead SET is_needed = 0")


def match_no_wal(connection: sqlite3.Connection) -> None:
    """Record a salt that no -wal has: after the next checkpoint none belongs to the database."""
    connection.execute("UPDATE write_ahead SET salt = (coalesce(salt, 0) + ?) % ?", (SALTS // 2, SALTS))


def checkpoint(connection: sqlite3.Connection) -> bool:
    """Copy the -wal into the database; False if a reader still needs a part of it."""
    _, frames, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return bool(frames == copied)


class WalFile:
    """An open -wal whose frames can be looked at, to find out whether it was cut and then written behind the cut.

    SQLite goes on where it had stopped. What was cut then reads as zeros, and a checkpoint would copy them.
    """

    def __init__(self, path: Path, page_bytes: int) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._frame_bytes = FRAME_HEADER_BYTES + page_bytes

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def has_hole(self, size_bytes: int) -> bool:
        """Tell whether the last frame of what were so many bytes has been cut off."""
        frames = (size_bytes - HEADER_BYTES) // self._frame_bytes
        return frames > 0 and self._is_hole(HEADER_BYTES + (frames - 1) * self._frame_bytes)

    def end_at_hole(self) -> None:
        """Cut off all that lies behind the first hole, so that nobody takes it for whole."""
        size_bytes = os.fstat(self._descriptor).st_size
        places = (0, *range(HEADER_BYTES, size_bytes, self._frame_bytes))
        os.ftruncate(self._descriptor, next(filter(self._is_hole, places), size_bytes))

    def _is_hole(self, at: int) -> bool:
        return not any(os.pread(self._descriptor, 4, at))
