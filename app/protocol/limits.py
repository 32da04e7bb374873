"""What the connections may ask for, one and all."""

import sys
from dataclasses import dataclass
from typing import Final, Self

from app.settings import Settings

MAX_HEADERS: Final = 100
MAX_PIPELINED: Final = 32
FRAMING_BYTES: Final = 16
"""So much framing may go with each byte of a chunked body; a chunk of one byte takes five."""
LINGER_BYTES: Final = 2**20
LINGER_SECONDS: Final = 2.0
"""A client that is still sending when it is refused needs a while to come to the answer."""
SPARES: Final = 64
"""Connections beyond the limit on which probes are answered, and nothing else."""
PROBES: Final = frozenset((b"/livez", b"/readyz", b"/metrics"))
OTHER_FILES: Final = 128
"""For the store and the logs, of the files that the process may open."""
MOST_BY_DEFAULT: Final = 4096
LEAST_BY_DEFAULT: Final = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings that the connections go by."""

    head_bytes: int
    head_seconds: float
    keep_alive_seconds: float
    stall_seconds: float
    bytes_per_second: float
    connections: int
    body_bytes: float

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Take them from the settings, and from what the process may open."""
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
        """Say what is wrong with them where the process may open too few files; empty if nothing is."""
        files, needed = most_files(), self.connections + SPARES + OTHER_FILES
        if files is None or files >= needed:
            return ""
        return f"{self.connections} connections (ITAN_MAX_CONNECTIONS) need {needed} open files; {files} are allowed"


def most_files() -> int | None:
    """Give how many files the process may open; None if nothing says so."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft
