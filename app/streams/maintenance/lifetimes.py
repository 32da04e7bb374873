"""How long streams may be silent before they are deleted, by the beginning of their names."""

from typing import NamedTuple, Self

from app import patterns
from app.durations import read_duration

FORM = "is not NAME=TIME with a time such as 90s, 12h or 30d, or 0 for never, and a name that may end in *"


class Lifetime(NamedTuple):
    """A pattern of streams, and how long such streams may be silent; None means for ever."""

    streams: str
    seconds: int | None


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
        return next((lifetime.seconds for lifetime in self._lifetimes if patterns.fits(lifetime.streams, stream)), None)


def _read_entry(number: int, entry: str) -> Lifetime:
    name, found, time = entry.partition("=")
    try:
        if not (found and patterns.PATTERN.fullmatch(name)):
            raise ValueError
        return Lifetime(name, None if time == "0" else read_duration(time))
    except ValueError:
        raise ValueError(f"ITAN_STREAM_TTL, entry {number}: {entry!r} {FORM}") from None
