"""Finds the samples of a time, or of an incident, in a log that may grow meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from app.storage import Entry, Position, StaleWriter
from app.streams.log.blocks import Part
from app.streams.log.log import Log, end_of
from app.streams.log.seen import Seen, seen_in
from app.streams.log.span import Span


class Wanted(Protocol):
    """Which samples are looked for."""

    def takes(self, seen: Seen) -> npt.NDArray[np.bool_]:
        """Tell which of these samples (n,) are looked for."""

    def is_over(self, seen: Seen) -> bool:
        """Tell whether none of the samples after these is looked for."""


@dataclass(frozen=True, slots=True)
class OfSpan:
    """The samples of a stretch of time; none of them arrived after `arrived_by`."""

    span: Span
    arrived_by: float
    flagged_only: bool

    def takes(self, seen: Seen) -> npt.NDArray[np.bool_]:
        """Take those of the time."""
        inside = self.span.holds(seen.time)
        return inside & seen.is_anomaly if self.flagged_only else inside

    def is_over(self, seen: Seen) -> bool:
        """Arrivals are in order, timestamps need not be."""
        return bool(seen.at[-1] > self.arrived_by)


@dataclass(frozen=True, slots=True)
class OfIncident:
    """The samples of an incident, by the seq of the one that opened it.

    They stand side by side in the log, but for those that were held out, which belong to no incident and end none.
    """

    incident: int
    flagged_only: bool

    def takes(self, seen: Seen) -> npt.NDArray[np.bool_]:
        """Take those of the incident."""
        inside: npt.NDArray[np.bool_] = seen.incident == self.incident
        return inside & seen.is_anomaly if self.flagged_only else inside

    def is_over(self, seen: Seen) -> bool:
        """It is over where a sample is not of it any more."""
        after = seen.incident[(seen.seq > self.incident) & ~seen.held_out]
        return len(after) > 0 and bool(after[-1] != self.incident)


class Search:
    """Looks through a log from a seq on for several kinds of samples at once.

    found (k,) are the seqs of each kind, in order, at most so many of all; counts (k,) are how many there are.
    """

    def __init__(self, log: Log, first_seq: int, wanted: Sequence[Wanted], most: int) -> None:
        self._log, self._first_seq = log, first_seq
        self._wanted, self.most = wanted, most
        self.found: list[list[int]] = [[] for _ in wanted]
        self._newest: Sequence[Entry] = ()
        self._is_over = not wanted
        self.counts = [0] * len(wanted)

    async def read_to(self, end: Position) -> None:
        """Look on up to a position, or until there is nothing more to find; other tasks run in between.

        Raises StaleWriter if the log is another one by now than the one that was looked through first.
        """
        last = self._newest[-1] if self._newest else None
        async for part in self._log.parts(self._before_next()):
            if last is not None and part[0] != last:
                raise StaleWriter(self._log.stream, last.position, part[0].position)
            if not self._is_over:
                self._look_at(part if last is None else part[1:])
            last, self._newest = None, part
            if self._is_over or end_of(part) >= end:
                return
        if last is not None:
            raise StaleWriter(self._log.stream, last.position, end)

    def _before_next(self) -> Position:
        """Give the position before the newest entry that was looked at: it is read again, to know the log by it."""
        if not self._newest:
            return Position.before(self._first_seq)
        seq, sub = end_of(self._newest)
        return Position(seq, sub - 1) if sub else Position.before(seq)

    def _look_at(self, entries: Sequence[Entry]) -> None:
        seen = entries.seen() if isinstance(entries, Part) else seen_in(entries)
        if seen is None:
            return
        for i, wanted in enumerate(self._wanted):
            chosen = seen.seq[wanted.takes(seen)]
            self.counts[i] += len(chosen)
            if sum(self.counts) <= self.most:
                self.found[i] += chosen.tolist()
        self._is_over = all(wanted.is_over(seen) for wanted in self._wanted)
