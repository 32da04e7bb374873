"""How full a store is."""

from dataclasses import dataclass
from typing import Final

NEARLY_FULL: Final = 0.85


@dataclass(frozen=True, slots=True)
class Usage:
    """How much a store uses of what fills up first: a disk, or a server's memory.

    A limit of 0 means that no limit is known. The sizes of the files are those of an SQLite store.
    """

    used_bytes: int = 0
    limit_bytes: int = 0
    database_bytes: int = 0
    wal_bytes: int = 0

    @property
    def share(self) -> float:
        """Give the share that is used."""
        return self.used_bytes / self.limit_bytes if self.limit_bytes else 0.0

    def warnings(self, of: str) -> list[str]:
        """Warn before writes are refused."""
        return [f"{of} is {self.share:.0%} full"] if self.share > NEARLY_FULL else []
