"""Limits of connections, for each and for all together."""

import sys
from dataclasses import dataclass
from typing import Final, Self

from app.settings import Settings

MAX_HEADERS: Final = 100
MAX_PIPELINED: Final = 32
FRAMING_BYTES: Final = 16
"""Most bytes of framing for each byte of a chunked body; a chunk of one byte needs five."""
LINGER_BYTES: Final = 2**20
LINGER_SECONDS: Final = 2.0
"""Time for a client that is still sending when it is refused to read its answer."""
SPARES: Final = 64
"""Connections beyond the limit, on which only probes are answered."""
PROBES: Final = frozenset((b"/livez", b"/readyz", b"/metrics"))
OTHER_FILES: Final = 128
"""Open files kept for the store and the logs."""
MOST_BY_DEFAULT: Final = 4096
LEAST_BY_DEFAULT: Final = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that connections must keep."""

    head_bytes: int
    head_seconds: float
    keep_alive_seconds: float
    stall_seconds: float
    bytes_per_second: float
    connections: int
    body_bytes: float

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Make them from the settings and the limit of open files."""
        room = MOST_BY_DEFAULT if (files := most_files()) is None else files - SPARES - OTHER_FILES
        return cls(
            head_bytes=settings.max_head_bytes,
            head_seconds=settings.head_seconds,
            keep_alive_seconds=settings.keep_alive_seconds,
            stall_seconds=settings.stall_seconds,
            bytes_per_second=settings.min_bytes_per_second,
            connections=settings.max_connections or max(LEAST_BY_DEFAULT, min(room, MOST_BY_DEFAULT)),
            body_bytes=settings.body_budget_mb * 2**20,
        )

    def warning(self) -> str:
        """Say that the process may open too few files for them; empty if it may open enough."""
        files, needed = most_files(), self.connections + SPARES + OTHER_FILES
        if files is None or files >= needed:
            return ""
        return f"{self.connections} connections (ITAN_MAX_CONNECTIONS) need {needed} open files; {files} are allowed"


def most_files() -> int | None:
    """Give how many files the process may open; None if there is no limit."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft
