"""How full a store is, and which writes it refused lately."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final

NEARLY_FULL: Final = 0.85
# Whether the store still refuses is not known until somebody tries.
LATELY_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class Room:
    """What a store takes, and what it may take in the place that fills up first: a disk, or a server's memory.

    A limit of 0 is none that is known. The sizes of the files are those of an SQLite store.
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


class RefusedWrites:
    """Remembers the last write that was refused, until one is kept."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._last: tuple[float, str] | None = None
        self.tell: Callable[[str], object] = lambda _: None

    def note(self, cause: str, reason: str) -> None:
        """Take in a refusal."""
        self._last = self._clock(), reason
        self.tell(cause)

    def note_kept(self) -> None:
        """Take in a write that was kept."""
        self._last = None

    def lately(self) -> str | None:
        """Say why a write was refused lately, if none was kept since."""
        if self._last is None or (seconds := self._clock() - self._last[0]) > LATELY_SECONDS:
            return None
        return f"a write was refused {seconds:.0f} s ago, and none was kept since: {self._last[1]}"
