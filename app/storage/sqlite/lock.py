"""A lock on a file, released when the process that holds it ends."""

import fcntl
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from app.storage.errors import Cause, StoreUnavailable

# Linux locks the open file itself, whatever name it was opened by. SQLite locks bytes below this one.
LOCKED_BYTE = 1 << 62
LOCK_FILE_ITSELF = getattr(fcntl, "F_OFD_SETLK", None)


class FileLock:
    """Lets one process at a time use a file, whatever path leads to it.

    The lock file beside it, named after the resolved path, holds the number of the owning process. The lock on the file
    itself covers other names of it: hard links, or one file mounted in two places.
    """

    def __init__(self, path: Path) -> None:
        """Take the resolved path of a file, which need not exist."""
        self._path, self._beside = path, path.with_name(path.name + ".lock")
        self._descriptors: list[int] = []

    @property
    def descriptor(self) -> int:
        """Give the descriptor of the locked file."""
        return self._descriptors[-1]

    def acquire(self) -> None:
        """Take the lock, and create the file if there is none. Raises StoreUnavailable, naming the holder."""
        try:
            # in this order: closing a file that SQLite has open in this process would release SQLite's own locks
            self._take(self._beside, lock_beside)
            self._take(self._path, lock_itself)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Release the lock. The lock file stays, since removing it would race with the next holder."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _take(self, path: Path, lock: Callable[[int], None]) -> None:
        try:
            self._descriptors.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o644))
        except OSError as error:
            raise StoreUnavailable(f"cannot open {path}: {error.strerror}") from error
        try:
            lock(self.descriptor)
        except BlockingIOError as error:
            raise StoreUnavailable(f"cannot lock {path}: {self._holder(path)}", Cause.LOCKED) from error
        except OSError as error:
            raise StoreUnavailable(f"cannot lock {path}: {error.strerror}", Cause.LOCKED) from error

    def _holder(self, path: Path) -> str:
        number = self._beside.read_text(errors="replace").strip() if path == self._beside else ""
        holder = f"process {number}" if number else "another process"
        by = "" if path == self._beside else " by another name"
        return f"{holder} is using it{by}; one process at a time can use an SQLite store"


def lock_beside(descriptor: int) -> None:
    """Lock the lock file, and write our process number into it."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with suppress(OSError):  # the number only serves the message of others, so a full disk must not stop us
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)


def lock_itself(descriptor: int) -> None:
    """Lock a byte of the file that nobody reads or writes."""
    if LOCK_FILE_ITSELF is not None:
        fcntl.fcntl(descriptor, LOCK_FILE_ITSELF, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, LOCKED_BYTE, 1, 0))
