"""Watches over the files of an open SQLite store: what others may do to them, and when the -wal has grown."""

import logging
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from time import monotonic

from app.storage import sqlite_ahead as ahead
from app.storage.base import Cause, StoreUnavailable

# SQLite's own measure: a thousand pages.
CHECKPOINT_BYTES = 4 << 20
AGAIN_SECONDS = 1.0

logger = logging.getLogger(__name__)


class Watch:
    """Compares what stands at the paths of a store with what was opened; used in the writing thread alone.

    A comparison costs two calls of the system, some 5 us, so it is made before and after each transaction.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor, self._ahead_path = path, descriptor, ahead.ahead_of(path)
        self._places = str(path), str(self._ahead_path)
        self._is_needed = self._is_unfit = False
        self._not_before = 0.0
        self._fault = ""
        self._lasting_fault = ""

    def begin(self, connection: sqlite3.Connection, opening: bytes) -> None:
        """Note what was opened, and that the database needs its -wal from now on."""
        self._opening, self._root, self._is_marked = opening, 0, False
        self._identity, self._seen = identity(os.fstat(self._descriptor)), (0, 0)
        with suppress(sqlite3.OperationalError):  # a full disk: nothing else is written before this
            self._mark(connection)
        # where nothing could be written, this opens the -wal
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        begun = self._ahead_path.stat()
        self._ahead_identity, self._ahead_bytes = identity(begun), begun.st_size
        self._fault = self._find_fault(connection)

    def look(self, connection: sqlite3.Connection) -> None:
        """Raise StoreUnavailable, which names the file, if what is written would not be found again at the path.

        Raises OperationalError as long as the disk has no room for a mark.
        """
        if not self._is_marked:
            self._mark(connection)
        if not self._fault and self._is_as_before():
            return
        fault = self._lasting_fault or self._find_fault(connection)
        if fault != self._fault:
            self._fault = fault
            logger.error("%s", fault or f"{self._path} and its write-ahead file are back: the store goes on")
        if fault:
            raise StoreUnavailable(fault, Cause.REPLACED)

    def _is_as_before(self) -> bool:
        """Tell whether nothing has happened since the last look, but that the -wal may have grown."""
        try:
            now, now_ahead = map(os.stat, self._places)
        except OSError:
            return False
        if written(now) != self._seen or identity(now) != self._identity or identity(now_ahead) != self._ahead_identity:
            return False
        size_bytes, self._ahead_bytes = self._ahead_bytes, max(self._ahead_bytes, now_ahead.st_size)
        return now_ahead.st_size >= size_bytes

    def _mark(self, connection: sqlite3.Connection) -> None:
        ahead.expect_any(connection, self._opening)
        self._checkpoint(connection)
        self._is_marked = True

    def checkpoint_if_due(self, connection: sqlite3.Connection) -> None:
        """Copy what the -wal holds into the database once that is much; it stays longer while somebody reads it."""
        if self._fault or self._ahead_bytes < CHECKPOINT_BYTES or monotonic() < self._not_before:
            return
        is_done = False
        with suppress(sqlite3.OperationalError):  # a full disk: the -wal keeps it
            is_done = self._checkpoint(connection)
        self._not_before = 0.0 if is_done else monotonic() + AGAIN_SECONDS

    def end(self, connection: sqlite3.Connection) -> None:
        """Let the database do without a -wal, before its last connection is closed."""
        if self._is_needed:
            with suppress(sqlite3.OperationalError):
                ahead.need_no_more(connection)

    def _checkpoint(self, connection: sqlite3.Connection) -> bool:
        with suppress(sqlite3.OperationalError):  # a full disk: only a checkpoint can make room
            ahead.need(connection, self._ahead_path)
            self._is_needed = True
        try:
            is_done = ahead.checkpoint(connection)
        finally:
            if self._is_needed:
                ahead.need_no_more(connection)
                self._is_needed = False
        if is_done:
            self._root = find_root(connection)
        return is_done

    def _find_fault(self, connection: sqlite3.Connection) -> str:
        try:
            now = self._path.stat()
        except OSError as error:
            return f"{self._path} was removed while it was in use ({error.strerror})"
        if identity(now) != self._identity:
            return f"{self._path} is another file than the one in use"
        if written(now) != self._seen:
            if fault := self._inspect(connection, now.st_size):
                return fault
            self._seen = written(now)
        return self._find_fault_ahead(connection)

    def _inspect(self, connection: sqlite3.Connection, size_bytes: int) -> str:
        """Look into a database that was written to: by a checkpoint, or by somebody else."""
        header = os.pread(self._descriptor, 100, 0)
        page_bytes = int.from_bytes(header[16:18]) or 1
        page_bytes = 65_536 if page_bytes == 1 else page_bytes
        if size_bytes < (expected := page_bytes * int.from_bytes(header[28:32])) or len(header) < 100:
            return f"{self._path} was cut to {size_bytes} bytes while it was in use; it should have {expected}"
        if self._root and not self._holds_mark(page_bytes):
            self._root = find_root(connection)  # a VACUUM moves it
            if not self._holds_mark(page_bytes):
                return f"{self._path} was overwritten while it was in use"
        return ""

    def _holds_mark(self, page_bytes: int) -> bool:
        return self._opening in os.pread(self._descriptor, page_bytes, (self._root - 1) * page_bytes)

    def _find_fault_ahead(self, connection: sqlite3.Connection) -> str:
        try:
            now = self._ahead_path.stat()
        except OSError as error:
            return self._rescue(connection, f"was removed while it was in use ({error.strerror})")
        if identity(now) != self._ahead_identity:
            return self._rescue(connection, "is another file than the one in use")
        if now.st_size < self._ahead_bytes and not self._is_whole(connection):
            self._lasting_fault = f"{self._ahead_path} was cut to {now.st_size} bytes while it was in use"
        self._ahead_bytes = self._ahead_path.stat().st_size if now.st_size < self._ahead_bytes else now.st_size
        return self._lasting_fault

    def _is_whole(self, connection: sqlite3.Connection) -> bool:
        """Tell whether a -wal that shrank can still be read: it began anew, or was emptied by a checkpoint."""
        try:
            ahead.checkpoint(connection)  # it must not be written to before: the hole would be read as zeros
            self._checkpoint(connection)
        except sqlite3.Error:
            return False
        return True

    def _rescue(self, connection: sqlite3.Connection, what: str) -> str:
        """Copy into the database what only this process can still read."""
        is_saved = False
        with suppress(sqlite3.Error):
            if not self._is_unfit:
                ahead.fit_none(connection)
                self._is_unfit = True
            is_saved = ahead.checkpoint(connection)
        kept = (
            "all that was acknowledged is in the database" if is_saved else "its last part is not yet in the database"
        )
        if is_saved:
            self._lasting_fault = f"{self._ahead_path} {what}; {kept}: restart the service"
        return self._lasting_fault or f"{self._ahead_path} {what}; {kept}"


def identity(stat: os.stat_result) -> tuple[int, int]:
    """Give what tells one file from another."""
    return stat.st_dev, stat.st_ino


def written(stat: os.stat_result) -> tuple[int, int]:
    """Give what changes when a file is written to."""
    return stat.st_mtime_ns, stat.st_size


def find_root(connection: sqlite3.Connection) -> int:
    """Give the page of the mark."""
    row = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'write_ahead'").fetchone()
    return int(row[0])
