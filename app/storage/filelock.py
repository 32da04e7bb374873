"""A lock on a file that ends with the process that holds it."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from app.storage.base import StoreUnavailable


class FileLock:
    """Lets one process at a time use what the path stands for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock. Raises StoreUnavailable, naming the holder, if another has it."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreUnavailable(f"cannot open {self._path}: {error.strerror}") from error
        try:
            self._lock(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise StoreUnavailable(f"cannot lock {self._path}: {self._describe(error)}") from error
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back; the file stays, since removing it would race with the next holder."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _lock(self, descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(OSError):  # the number is for the other's message alone, so a full disk must not stop us
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)

    def _describe(self, error: OSError) -> str:
        if not isinstance(error, BlockingIOError):
            return str(error.strerror)
        holder = self._path.read_text(errors="replace").strip() or "unknown"
        return f"process {holder} is using it; one process at a time can use an SQLite store"
