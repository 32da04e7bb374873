"""The tables of an SQLite store, and how its file is recognised."""

import sqlite3
from time import time

from app.storage.errors import StoreError

SCHEMA_VERSION = 1
PACKED_VERSION = 2
"""The version of a file with blocks: builds that know none must not write there."""
APPLICATION_ID = int.from_bytes(b"itan")

# Files of the same version may lack these tables, which came later.
LATER_TABLES = {
    "bases": """CREATE TABLE IF NOT EXISTS bases (
    stream INTEGER PRIMARY KEY, seq INTEGER NOT NULL, sub INTEGER NOT NULL, body BLOB NOT NULL);
""",
    "documents": """CREATE TABLE IF NOT EXISTS documents (
    kind TEXT, name TEXT, body BLOB NOT NULL, PRIMARY KEY (kind, name)) WITHOUT ROWID;
""",
    "incidents": """CREATE TABLE IF NOT EXISTS incidents (
    stream INTEGER, seq INTEGER, opened INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (stream, seq)) WITHOUT ROWID;
""",
    "incidents_opened": """CREATE INDEX IF NOT EXISTS incidents_opened ON incidents (opened);
""",
    "incident_changes": """CREATE TABLE IF NOT EXISTS incident_changes (
    mark TEXT PRIMARY KEY) WITHOUT ROWID;
""",
    "files": """CREATE TABLE IF NOT EXISTS files (
    stream INTEGER, seq INTEGER, body BLOB NOT NULL, ids BLOB NOT NULL, PRIMARY KEY (stream, seq));
""",
    "summaries": """CREATE TABLE IF NOT EXISTS summaries (
    stream INTEGER PRIMARY KEY, body BLOB NOT NULL);
""",
    "blocks": """CREATE TABLE IF NOT EXISTS blocks (
    stream INTEGER NOT NULL, seq INTEGER NOT NULL, sub INTEGER NOT NULL, after_seq INTEGER NOT NULL,
    after_sub INTEGER NOT NULL, entries INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (stream, seq, sub));
""",
    "buckets": """CREATE TABLE IF NOT EXISTS buckets (
    stream INTEGER, number INTEGER, body BLOB NOT NULL, PRIMARY KEY (stream, number)) WITHOUT ROWID;
""",
}
SCHEMA = f"""{"".join(LATER_TABLES.values())}
CREATE TABLE streams (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
    head_seq INTEGER NOT NULL, head_sub INTEGER NOT NULL, log_entries INTEGER NOT NULL, log_bytes INTEGER NOT NULL,
    changed_at REAL NOT NULL DEFAULT 0);
CREATE TABLE snapshots (
    stream INTEGER PRIMARY KEY, seq INTEGER NOT NULL, sub INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE log (
    stream INTEGER NOT NULL, seq INTEGER NOT NULL, sub INTEGER NOT NULL,
    first_seq INTEGER, ids BLOB, body BLOB NOT NULL, PRIMARY KEY (stream, seq, sub));
CREATE TABLE ids (stream INTEGER, id TEXT, seq INTEGER NOT NULL, PRIMARY KEY (stream, id)) WITHOUT ROWID;
CREATE TABLE labels (stream INTEGER, seq INTEGER, body BLOB NOT NULL, PRIMARY KEY (stream, seq)) WITHOUT ROWID;
-- Numbers of deleted streams whose rows are still to be removed, a few at a time.
CREATE TABLE doomed (stream INTEGER PRIMARY KEY);
"""

# The number of streams, kept by the writing connection: counting a hundred thousand takes milliseconds.
CENSUS = """
PRAGMA temp_store = MEMORY;
CREATE TEMP TABLE census AS SELECT count(*) AS streams FROM main.streams;
CREATE TEMP TRIGGER born AFTER INSERT ON main.streams BEGIN UPDATE census SET streams = streams + 1; END;
CREATE TEMP TRIGGER gone AFTER DELETE ON main.streams BEGIN UPDATE census SET streams = streams - 1; END;
"""


def make_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of a new store."""
    connection.executescript(
        f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA application_id = {APPLICATION_ID}; "
        f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
    )


def refuse_foreign(connection: sqlite3.Connection, application_id: int = APPLICATION_ID) -> None:
    """Raise StoreError for a file of another program or version."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    id_, version = read_number(connection, "application_id"), read_number(connection, "user_version")
    if tables > 0 and (id_ != application_id or version not in (SCHEMA_VERSION, PACKED_VERSION)):
        raise StoreError("SQLite: the file belongs to another program or to a newer version")


def add_changed_at(connection: sqlite3.Connection) -> None:
    """Add the column of the time of the last change to an older file; its streams count as changed now."""
    if "changed_at" not in [row[1] for row in connection.execute("PRAGMA table_info(streams)")]:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ALTER TABLE streams ADD COLUMN changed_at REAL NOT NULL DEFAULT 0")
        connection.execute("UPDATE streams SET changed_at = ?", (time(),))
        connection.execute("COMMIT")


def move_sources(connection: sqlite3.Connection) -> None:
    """Move the sources of an older file, which had a table of their own, to the documents."""
    connection.execute("BEGIN IMMEDIATE")
    take_sources(connection)
    connection.execute("DROP TABLE IF EXISTS sources")
    connection.execute("COMMIT")


def take_sources(connection: sqlite3.Connection) -> None:
    """Copy the sources of an older file to the documents; they are newer than what is there."""
    if has_table(connection, "sources"):
        connection.execute("INSERT OR REPLACE INTO documents SELECT 'source', name, body FROM sources")


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Tell whether the file has a table."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def read_number(connection: sqlite3.Connection, pragma: str) -> int:
    """Read a numeric pragma."""
    number: int = connection.execute(f"PRAGMA {pragma}").fetchone()[0]
    return number
