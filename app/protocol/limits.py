"""What one connection may ask for."""

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


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings that the connections go by."""

    head_bytes: int

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Take them from the settings."""
        return cls(head_bytes=settings.max_head_bytes)
