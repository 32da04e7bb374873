"""What the list of streams shows of a stream's newest samples, as the log tells it."""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from app.storage import INCIDENTS_KEPT, Position
from app.streams.log.events import BatchEvent, ConfigEvent, Label, LabelEvent, UnreadableEvent, read_event, read_records
from app.streams.log.incidents import count_votes
from app.streams.log.log import Log
from core import Records

HOURS: Final = 24
HOUR_SECONDS: Final = 3600


class Recent(msgspec.Struct):
    """The newest sample, the flagged ones of the HOURS hours up to the newest of these, and labels of incidents.

    Times are those of samples, none later than its arrival, or their arrival if they came without; newest_time is None
    without a sample.
    flagged_time and severity are those of the newest flagged sample. flags holds hours since 1970, each with how many
    samples it has; labels holds the newest incidents by their seq, each with how many of its samples have a label.

    It follows from the log alone, however that is cut into events.
    """

    newest_time: float | None = None
    flagged_time: float | None = None
    severity: float | None = None
    flags: list[tuple[int, int]] = msgspec.field(default_factory=list)
    labels: list[tuple[int, int]] = msgspec.field(default_factory=list)

    def take(self, event: BatchEvent | LabelEvent, records: Records) -> None:
        """Take an event of the log, with its records."""
        if isinstance(event, BatchEvent):
            self.note_newest(records, event.at)
            self.note_flagged(records, event.at)
        else:
            self.label(records, event.labels)

    def note_newest(self, records: Records, at: float) -> None:
        """Note the time of the last of these samples, which arrived at a time."""
        self.newest_time = last_time(records, at)

    def note_flagged(self, records: Records, at: float) -> None:
        """Count those of these samples that were flagged, and the incidents that they opened."""
        counted = records.counted
        flagged = counted[np.flatnonzero(counted.is_anomaly)]
        if not len(flagged):
            return
        times = np.where(np.isnan(flagged.time), at, flagged.time)
        severity = float(flagged.severity[-1])
        self.flagged_time, self.severity = float(times[-1]), severity if severity == severity else None
        self._add(times // HOUR_SECONDS)
        opened = flagged.seq[flagged.incident == flagged.seq].tolist()
        self.labels = [*self.labels, *((seq, 0) for seq in opened)][-INCIDENTS_KEPT:]

    def _add(self, hours: npt.NDArray[np.float64]) -> None:
        counts = dict(self.flags)
        for hour, count in zip(*np.unique(hours, return_counts=True), strict=True):
            counts[int(hour)] = counts.get(int(hour), 0) + int(count)
        newest = max(counts)
        self.flags = sorted((hour, count) for hour, count in counts.items() if hour > newest - HOURS)

    def label(self, before: Records, labels: Sequence[Label]) -> None:
        """Count new labels of samples, whose records are as before."""
        votes = count_votes(before, labels)
        self.labels = [(seq, count + sum(votes.get(seq, ()))) for seq, count in self.labels]

    def n_unlabelled(self, oldest_seq: int) -> int:
        """Count the incidents without a label that opened at this sample or later."""
        return sum(not count and seq >= oldest_seq for seq, count in self.labels)


async def recent_of(log: Log, next_seq: int) -> Recent:
    """Make it from the newest events of a log, as far as they can be read."""
    recent = Recent()
    with suppress(UnreadableEvent):
        async for entry in log.newest_entries(next_seq):
            event = read_event(entry.body)
            if not isinstance(event, ConfigEvent):
                recent.take(event, read_records(event.records))
    return recent


def last_time(records: Records, at: float) -> float:
    """Give the time of the last of these samples, or that of their arrival if it has none."""
    time = float(records.time[-1])
    return at if math.isnan(time) else time


async def newest_time(log: Log, head: Position) -> float | None:
    """Give the time of the newest sample in the log; None if the log is empty. Raises UnreadableEvent."""
    entries = await log.entries(Position.before(head.seq), 1)
    event = read_event(entries[0].body) if entries else None
    return last_time(read_records(event.records), event.at) if isinstance(event, BatchEvent) else None
