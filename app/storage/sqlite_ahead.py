"""What tells that a database and a write-ahead file belong together.

What is committed stands in the write-ahead file (-wal) until a checkpoint copies it into the database. Without its -wal
the database is an older store, and SQLite would take the -wal of any other database for its own. So a row says what the
database needs. Each checkpoint leaves `is_needed` true in the database and false in the -wal: whoever copies all of the
-wal clears it. `salt` numbers the -wal; SQLite raises it by one each time that the -wal begins anew. `opening` is
drawn at random whenever the store is opened.
"""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from secrets import token_bytes
from time import sleep
from typing import NamedTuple
from urllib.parse import quote

from app.storage.base import StoreCorrupt

SCHEMA = "CREATE TABLE IF NOT EXISTS write_ahead (opening BLOB, is_needed INTEGER NOT NULL, salt INTEGER)"
MAGIC = (0x377F0682, 0x377F0683)
HEADER_BYTES = 32
SALTS = 1 << 32
# Others may have begun the -wal anew too: each `PRAGMA wal_checkpoint(TRUNCATE)` in a shell does.
MOST_RESTARTS = 16
SETTLE_SECONDS = 0.2


class Need(NamedTuple):
    """What a database says of its -wal."""

    is_needed: bool
    salt: int | None


def ahead_of(path: Path) -> Path:
    """Name the -wal of a database."""
    return path.with_name(path.name + "-wal")


def size_of(path: Path) -> int:
    """Measure a file; 0 if there is none."""
    return path.stat().st_size if path.exists() else 0


def refuse_mismatch(path: Path) -> None:
    """Raise StoreCorrupt for a database and a -wal that do not belong together; SQLite must not have opened them."""
    if find_mismatch(path):
        sleep(SETTLE_SECONDS)
        if mismatch := find_mismatch(path):
            raise StoreCorrupt(None, mismatch)


def find_mismatch(path: Path) -> str:
    """Say why a database and a -wal do not belong together; a service that is just closing them may look so."""
    ahead = ahead_of(path)
    if size_of(path) == 0 and size_of(ahead) > 0:
        return f"{path} is missing or empty, but there is {ahead}: put back the file it belongs to"
    need, salt = read_need(path), read_salt(ahead)
    if need.is_needed and salt is None:
        return f"{ahead} is missing or empty, and {path} alone lacks what was written last: put both files back"
    if None not in (need.salt, salt) and (salt - need.salt) % SALTS > MOST_RESTARTS:  # type: ignore[operator]
        return f"{ahead} was written for another file than {path}: put back the one it belongs to"
    return ""


def read_need(path: Path) -> Need:
    """Read what the database alone says, as if there were no -wal."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?immutable=1", uri=True)) as connection:
            row = connection.execute("SELECT is_needed, salt FROM write_ahead").fetchone()
    except sqlite3.Error:  # an older version wrote it, or no SQLite at all
        row = None
    return Need(bool(row[0]), row[1]) if row else Need(is_needed=False, salt=None)


def read_salt(ahead: Path) -> int | None:
    """Give the number of a -wal; None if it has no header."""
    header = b""
    with suppress(FileNotFoundError), ahead.open("rb") as file:
        header = file.read(HEADER_BYTES)
    return int.from_bytes(header[16:20]) if len(header) == HEADER_BYTES and is_ahead(header) else None


def is_ahead(header: bytes) -> bool:
    """Tell whether a -wal begins like this."""
    return int.from_bytes(header[:4]) in MAGIC


def new_opening() -> bytes:
    """Draw the mark of an opening."""
    return token_bytes(16)


def expect_any(connection: sqlite3.Connection, opening: bytes) -> None:
    """Note a new opening, whose -wal is not known yet."""
    connection.execute(SCHEMA)
    connection.execute("REPLACE INTO write_ahead (rowid, opening, is_needed, salt) VALUES (1, ?, 0, NULL)", (opening,))


def need(connection: sqlite3.Connection, ahead: Path) -> None:
    """Note that the database needs its -wal from the next checkpoint on."""
    connection.execute("UPDATE write_ahead SET is_needed = 1")
    connection.execute("UPDATE write_ahead SET salt = ?", (read_salt(ahead),))


def need_no_more(connection: sqlite3.Connection) -> None:
    """Note in the -wal that the database needs no other one when all of this one has been copied into it."""
    connection.execute("UPDATE write_ahead SET is_needed = 0")


def fit_none(connection: sqlite3.Connection) -> None:
    """Note that no -wal belongs to the database as it will be after the next checkpoint."""
    connection.execute("UPDATE write_ahead SET salt = (coalesce(salt, 0) + ?) % ?", (SALTS // 2, SALTS))


def checkpoint(connection: sqlite3.Connection) -> bool:
    """Copy what can be copied from the -wal into the database; False if some is left, since a reader needs it."""
    _, frames, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return bool(frames == copied)
