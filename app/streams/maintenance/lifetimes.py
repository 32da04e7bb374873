"""How long streams may be silent before they are deleted, by the beginning of their names."""

import re
from typing import NamedTuple, Self

from app.durations import read_duration

PATTERN = re.compile(r"[A-Za-z0-9._:-]{0,128}\*?")
FORM = "is not NAME=TIME with a time such as 90s, 12h or 30d, or 0 for never, and a name that may end in *"


class Lifetime(NamedTuple):
    """A name, or a prefix of names, and how long such streams may be silent; None means for ever."""

    name: str
    is_prefix: bool
    seconds: int | None

    def fits(self, stream: str) -> bool:
        """Tell whether it is for a stream."""
        return stream.startswith(self.name) if self.is_prefix else stream == self.name


class Lifetimes:
    """The entries of ITAN_STREAM_TTL in their order; the first that fits counts.

    >>> lifetimes = Lifetimes.parse("pod-db-*=0, pod-*=30d")
    >>> [lifetimes.of(stream) for stream in ("pod-db-1", "pod-7", "web")]
    [None, 2592000, None]
    """

    def __init__(self, lifetimes: list[Lifetime]) -> None:
        self._lifetimes = lifetimes

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read comma separated NAME=TIME; ValueError names the entry that is wrong."""
        entries = [entry.strip() for entry in text.split(",") if entry.strip()]
        return cls([_read_entry(number, entry) for number, entry in enumerate(entries, 1)])

    def of(self, stream: str) -> int | None:
        """Give the seconds that a stream may be silent; None means for ever."""
        return next((lifetime.seconds for lifetime in self._lifetimes if lifetime.fits(stream)), None)


def _read_entry(number: int, entry: str) -> Lifetime:
    name, found, time = entry.partition("=")
    try:
        if not (found and name and PATTERN.fullmatch(name)):
            raise ValueError
        return Lifetime(name.removesuffix("*"), name.endswith("*"), None if time == "0" else read_duration(time))
    except ValueError:
        raise ValueError(f"ITAN_STREAM_TTL, entry {number}: {entry!r} {FORM}") from None
