"""The index of incidents: a row for each, and marks of those that have changed; what a row holds is the caller's."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from app.storage.log import MAX_SEQ, Position

INCIDENTS_KEPT: Final = 500
"""How many incidents of a stream the index keeps: the newest ones."""
MARKS_KEPT: Final = 100_000
"""How many places the store lists, and how many marks of new changes it keeps: the newest ones."""
NEW: Final = ""
"""The lane of changes that nobody has taken yet."""


class IncidentRow(NamedTuple):
    """An incident, by the seq of its opening sample; opened is when that came, in milliseconds since 1970.

    is_news asks for a mark in the list of changes.
    """

    seq: int
    opened: int
    body: bytes
    is_news: bool = False


NO_INCIDENTS: Sequence[IncidentRow] = ()


class IncidentKey(NamedTuple):
    """The place of an incident in the list of all, which is in this order."""

    opened: int
    stream: str
    seq: int

    def __str__(self) -> str:
        return f"{self.opened:016d} {self.stream} {self.seq:016d}"

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Read what `str` wrote."""
        opened, stream, seq = text.decode().split(" ")
        return cls(int(opened), stream, int(seq))


class IncidentChange(NamedTuple):
    """The mark of an incident that the event at a position changes; marked is when, in milliseconds since 1970.

    The mark may be there though the event is not, since its writer stopped in between.
    """

    marked: int
    stream: str
    seq: int
    position: Position

    def __str__(self) -> str:
        return f"{self.marked:016d} {self.stream} {self.seq:016d} {self.position}"

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Read what `str` wrote."""
        marked, stream, seq, position = text.split(b" ")
        return cls(int(marked), stream.decode(), int(seq), Position.parse(position))


class Mark(NamedTuple):
    """The mark of a change in a lane, where it waits until somebody has done with it; lanes begin with a letter."""

    lane: str
    change: IncidentChange

    def __str__(self) -> str:
        return f"{self.lane}|{self.change}" if self.lane else str(self.change)


def lane_bounds(lane: str, after: IncidentChange | None = None) -> tuple[str, str]:
    """Give two texts between which the marks of a lane lie, those after a change."""
    beginning, end = (f"{lane}|", f"{lane}}}") if lane else ("", ":")
    return beginning if after is None else str(Mark(lane, after)), end


def parse_mark(text: bytes) -> IncidentChange:
    """Read the change in a mark."""
    return IncidentChange.parse(text.rpartition(b"|")[2])


def check_incidents(rows: Sequence[IncidentRow]) -> None:
    """Raise ValueError for rows that some store could not keep exactly, or not all of them."""
    if len(rows) > INCIDENTS_KEPT:
        raise ValueError(f"{len(rows)} incidents in one write, the index keeps {INCIDENTS_KEPT}")
    if any(not (1 <= row.seq <= MAX_SEQ and 0 <= row.opened <= MAX_SEQ) for row in rows):
        raise ValueError(f"the seqs and times of incidents must be whole numbers up to {MAX_SEQ}")
