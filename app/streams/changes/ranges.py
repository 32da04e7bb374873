"""Labels for stretches of time and for incidents: their samples are looked up, then labelled like any others.

A look through a long log takes seconds. The stream goes on meanwhile; when its turn comes to be labelled, only what is
new since then is looked at.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from app.storage import IncidentKey, Position
from app.streams.changes.feedback import LabelRequest
from app.streams.errors import TooMany
from app.streams.log.events import Label
from app.streams.log.incident_ids import read_one
from app.streams.log.search import OfIncident, OfSpan, Search, Wanted
from app.streams.log.span import Span
from app.streams.open.session import Session
from app.streams.state.state import StreamState

SETTING = "ITAN_MAX_LABELS"


class Many(Protocol):
    """One label for many samples."""

    field: ClassVar[str]
    """How a request names it."""
    advice: ClassVar[str]
    """What to do if it holds too many samples."""

    @property
    def anomaly(self) -> Label:
        """Give the label."""

    async def begin(self, session: Session, state: StreamState) -> tuple[int, Wanted]:
        """Say from which seq on to look for which samples."""

    def seqs(self, found: Sequence[int]) -> Sequence[int]:
        """Give the samples to label, of those that were found."""


@dataclass(frozen=True, slots=True)
class RangeLabel:
    """A label for the samples of a stretch of time, or for the flagged ones; None withdraws their labels."""

    anomaly: Label
    span: Span
    flagged_only: bool
    field: ClassVar[str] = "ranges"
    advice: ClassVar[str] = "split the time over several requests"

    async def begin(self, session: Session, state: StreamState) -> tuple[int, Wanted]:
        """Begin where the first samples of this time can have arrived: none arrives before its time."""
        # the clocks of workers, and of arrivals and timestamps, may differ by so much
        slack = session.settings.timestamp_allowance_seconds
        has_own_times = state.newest_timestamp is not None
        arrived_by = math.inf if has_own_times else self.span.last + slack
        first_seq = state.horizon.first_since(self.span.first - slack)
        return first_seq, OfSpan(self.span, arrived_by, self.flagged_only)

    def seqs(self, found: Sequence[int]) -> Sequence[int]:
        """Take them all."""
        return found


@dataclass(frozen=True, slots=True)
class IncidentLabel:
    """A label for the samples of an incident, or for the flagged ones; None withdraws their labels."""

    anomaly: Label
    key: IncidentKey
    flagged_only: bool
    field: ClassVar[str] = "incident"
    advice: ClassVar[str] = "label its time in parts, by the ranges of POST /feedback"

    async def begin(self, session: Session, state: StreamState) -> tuple[int, Wanted]:
        """Begin with the sample that opened the incident. Raises UnknownIncident."""
        await read_one(session.store, self.key)
        return self.key.seq, OfIncident(self.key.seq, self.flagged_only)

    def seqs(self, found: Sequence[int]) -> Sequence[int]:
        """Take them all, and the opening sample also if the log does not hold it any more: it has expired."""
        return found if self.key.seq in found else [self.key.seq, *found]


@dataclass(frozen=True, slots=True)
class Lookup:
    """What labels for many samples have found in the log of a stream."""

    many: Sequence[Many]
    search: Search

    @property
    def counts(self) -> list[int]:
        """Give how many samples each has found."""
        return self.search.counts

    async def go_on(self, end: Position) -> None:
        """Look on up to a position. Raises TooMany; StaleWriter if the stream was made again meanwhile."""
        await self.search.read_to(end)
        if sum(self.counts) > self.search.most:
            limit = f"at most {self.search.most} ({SETTING}) in one request: {self.many[0].advice}"
            raise TooMany(self.many[0].field, f"{sum(self.counts)} samples", limit)

    async def finish(self, session: Session) -> list[LabelRequest]:
        """Look at what has come since then; give a label for each sample that was found. The session's lock is held."""
        state = await session.state_to_change()
        for one in self.many:
            await one.begin(session, state)
        await self.go_on(state.position)
        pairs = zip(self.many, self.search.found, strict=True)
        return [LabelRequest(many.anomaly, seq=seq) for many, found in pairs for seq in many.seqs(found)]


async def begin(session: Session, many: Sequence[Many], room: int) -> Lookup:
    """Look up the samples of labels that there is room for; the session's lock is not held.

    Raises what a label raises: UnknownStream, LeaseHeld; and UnknownIncident, TooMany.
    """
    async with session.lock:
        state = await session.state_to_change()
        begun = [await one.begin(session, state) for one in many]
        end = state.position
    first_seq = min((seq for seq, _ in begun), default=1)
    lookup = Lookup(many, Search(session.log, first_seq, [wanted for _, wanted in begun], room))
    await lookup.go_on(end)
    return lookup
