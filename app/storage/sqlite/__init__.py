"""A store in one SQLite file."""

from app.storage.sqlite.reader import SqliteReader
from app.storage.sqlite.store import SqliteStore

__all__ = ["SqliteReader", "SqliteStore"]
