"""Watches the files of an open SQLite store: whether others touch them, and when the -wal needs a checkpoint."""

import logging
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from time import monotonic

from app.storage.errors import Cause, StoreUnavailable
from app.storage.sqlite import wal

# SQLite's own default: a thousand pages.
CHECKPOINT_BYTES = 4 << 20
AGAIN_SECONDS = 1.0

logger = logging.getLogger(__name__)


class FileWatch:
    """Compares the files at the store's paths with those that were opened. Only the writing thread uses it.

    A check costs three system calls, about 6 us, so one is made before and after each transaction.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor, self._wal_path = path, descriptor, wal.wal_path(path)
        self._places = str(path), str(self._wal_path)
        self._is_needed = self._is_unmatched = False
        self._not_before = 0.0
        self._fault = ""
        self._lasting_fault = ""

    def begin(self, connection: sqlite3.Connection, opening: bytes) -> None:
        """Remember what was opened, and record that the database needs its -wal from now on."""
        self._opening, self._root, self._is_recorded = opening, 0, False
        self._identity, self._seen = identity(os.fstat(self._descriptor)), (0, 0)
        with suppress(sqlite3.OperationalError):  # a full disk: `check` tries again before anything else is written
            self._record(connection)
        # if nothing could be written, this read opens the -wal
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        begun = self._wal_path.stat()
        self._wal_identity, self._wal_bytes = identity(begun), begun.st_size
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        self._wal = wal.WalFile(self._wal_path, page_bytes)
        self._fault = self._find_fault(connection)

    def check(self, connection: sqlite3.Connection) -> None:
        """Raise StoreUnavailable, naming the file, if what is written would not be found at the path again.

        Raises OperationalError while the disk has no room for the record of this opening.
        """
        if not self._is_recorded:
            self._record(connection)
        if not self._fault and self._is_as_before():
            return
        fault = self._lasting_fault or self._find_fault(connection)
        if fault != self._fault:
            self._fault = fault
            logger.error("%s", fault or f"{self._path} and its write-ahead file are back: the store goes on")
        if fault:
            raise StoreUnavailable(fault, Cause.REPLACED)

    def _is_as_before(self) -> bool:
        """Tell whether nothing has changed since the last check, except that the -wal may have grown."""
        try:
            now, now_wal = map(os.stat, self._places)
        except OSError:
            return False
        if written(now) != self._seen or identity(now) != self._identity or identity(now_wal) != self._wal_identity:
            return False
        if now_wal.st_size < self._wal_bytes or self._wal.has_hole(self._wal_bytes):
            return False
        self._wal_bytes = now_wal.st_size
        return True

    def _record(self, connection: sqlite3.Connection) -> None:
        wal.record_opening(connection, self._opening)
        self._checkpoint(connection)
        self._is_recorded = True

    def checkpoint_if_due(self, connection: sqlite3.Connection) -> None:
        """Copy the -wal into the database once it is long; later if a reader still needs it."""
        if self._fault or self._wal_bytes < CHECKPOINT_BYTES or monotonic() < self._not_before:
            return
        is_done = False
        with suppress(sqlite3.OperationalError):  # a full disk: the -wal keeps it
            is_done = self._checkpoint(connection)
        self._not_before = 0.0 if is_done else monotonic() + AGAIN_SECONDS

    def end(self, connection: sqlite3.Connection) -> None:
        """Record that the database needs no -wal, before its last connection is closed."""
        if self._is_needed:
            with suppress(sqlite3.OperationalError):
                wal.mark_not_needed(connection)
        self._wal.close()

    def _checkpoint(self, connection: sqlite3.Connection) -> bool:
        with suppress(sqlite3.OperationalError):  # a full disk: only a checkpoint can make room
            wal.mark_needed(connection, self._wal_path)
            self._is_needed = True
        try:
            is_done = wal.checkpoint(connection)
        finally:
            if self._is_needed:
                wal.mark_not_needed(connection)
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
        return self._find_wal_fault(connection)

    def _inspect(self, connection: sqlite3.Connection, size_bytes: int) -> str:
        """Inspect a database that was written to: by a checkpoint, or by another program."""
        header = os.pread(self._descriptor, 100, 0)
        page_bytes = int.from_bytes(header[16:18]) or 1
        page_bytes = 65_536 if page_bytes == 1 else page_bytes
        if size_bytes < (expected := page_bytes * int.from_bytes(header[28:32])) or len(header) < 100:
            return f"{self._path} was cut to {size_bytes} bytes while it was in use; it should have {expected}"
        if self._root and not self._holds_opening(page_bytes):
            self._root = find_root(connection)  # a VACUUM moves it
            if not self._holds_opening(page_bytes):
                return f"{self._path} was overwritten while it was in use"
        return ""

    def _holds_opening(self, page_bytes: int) -> bool:
        return self._opening in os.pread(self._descriptor, page_bytes, (self._root - 1) * page_bytes)

    def _find_wal_fault(self, connection: sqlite3.Connection) -> str:
        try:
            now = self._wal_path.stat()
        except OSError as error:
            return self._rescue(connection, f"was removed while it was in use ({error.strerror})")
        if identity(now) != self._wal_identity:
            return self._rescue(connection, "is another file than the one in use")
        if now.st_size >= self._wal_bytes and self._wal.has_hole(self._wal_bytes):
            self._wal.end_at_hole()
            now = self._wal_path.stat()
        if now.st_size < self._wal_bytes and not self._is_whole(connection):
            self._lasting_fault = f"{self._wal_path} was cut to {now.st_size} bytes while it was in use"
        self._wal_bytes = self._wal_path.stat().st_size if now.st_size < self._wal_bytes else now.st_size
        return self._lasting_fault

    def _is_whole(self, connection: sqlite3.Connection) -> bool:
        """Tell whether a -wal that shrank can still be read: it restarted, or a checkpoint emptied it."""
        try:
            wal.checkpoint(connection)  # before any write: SQLite would read the hole as zeros
            self._checkpoint(connection)
        except sqlite3.Error:
            return False
        return True

    def _rescue(self, connection: sqlite3.Connection, what: str) -> str:
        """Copy the -wal, which only this process can still read, into the database."""
        is_saved = False
        with suppress(sqlite3.Error):
            if not self._is_unmatched:
                wal.match_no_wal(connection)
                self._is_unmatched = True
            is_saved = wal.checkpoint(connection)
        kept = (
            "all that was acknowledged is in the database" if is_saved else "its last part is not yet in the database"
        )
        if is_saved:
            self._lasting_fault = f"{self._wal_path} {what}; {kept}: restart the service"
        return self._lasting_fault or f"{self._wal_path} {what}; {kept}"


def identity(stat: os.stat_result) -> tuple[int, int]:
    """Give the device and the inode, which identify a file."""
    return stat.st_dev, stat.st_ino


def written(stat: os.stat_result) -> tuple[int, int]:
    """Give the time of the last write and the size."""
    return stat.st_mtime_ns, stat.st_size


def find_root(connection: sqlite3.Connection) -> int:
    """Give the page that holds the record of the opening."""
    row = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'write_ahead'").fetchone()
    return int(row[0])
