"""Prepares a file, and the connection that writes to it."""

import sqlite3
from contextlib import suppress
from pathlib import Path

from app.storage.errors import StoreUnavailable
from app.storage.sqlite import wal
from app.storage.sqlite.schema import (
    LATER_TABLES,
    add_changed_at,
    make_tables,
    move_sources,
    read_number,
    refuse_foreign,
)


def set_up(connection: sqlite3.Connection, path: Path, synchronous: str) -> bytes:
    """Prepare a file and a connection for writing, and give the id of this opening."""
    refuse_foreign(connection)
    if not wal.size_of(wal.wal_path(path)):
        with suppress(sqlite3.OperationalError):  # another process reads
            # what is recorded now must not itself depend on a -wal
            connection.execute("PRAGMA journal_mode = DELETE")
    if read_number(connection, "user_version") == 0:
        make_tables(connection)
    for table in LATER_TABLES.values():
        connection.execute(table)
    move_sources(connection)
    add_changed_at(connection)
    opening = wal.new_opening()
    with suppress(sqlite3.OperationalError):  # a full disk: streams can still be read
        wal.record_opening(connection, opening)
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreUnavailable("SQLite: no write-ahead log on this file system")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("PRAGMA wal_autocheckpoint = 0")  # the file watch does it
    connection.execute("PRAGMA journal_size_limit = 0")  # so that its size shows what it holds
    return opening
