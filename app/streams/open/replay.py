"""Replays a log, and compares the scores with the logged ones."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from time import thread_time
from typing import Final

import numpy as np
import numpy.typing as npt

from app.build import BUILD
from app.counts import counted
from app.storage import Entry, Position, StoreCorrupt
from app.streams.log.events import (
    BatchEvent,
    ConfigEvent,
    LabelEvent,
    UnreadableEvent,
    read_all_records,
    read_event,
    read_records,
    read_timestamps,
)
from app.streams.log.incidents import follow
from app.streams.log.log import Log
from app.streams.slices import FIRST_ROWS, feedback_slices, join_slices, observe_slices
from app.streams.state.state import StreamState
from core import DetectorConfig, ItanError, Records

PAGE_ENTRIES = 64
TOLERANCE = 1e-9
NO_RECORDS: Final = Records.empty(0, 1, 0)


@dataclass(frozen=True, slots=True)
class Difference:
    """Samples of one entry whose replay differs from what a build logged."""

    position: Position
    build: str
    logged: Records
    replayed: Records

    @property
    def reason(self) -> str:
        """Say whether another version logged them, or this one."""
        return "other" if self.build == BUILD else "version"

    def __str__(self) -> str:
        logged, replayed = self.logged, self.replayed
        return (
            f"a replay of {counted(len(logged), 'sample')} differs from the log, first at {logged.seq[0]}: "
            f"score {replayed.score[0]!s}, logged {logged.score[0]!s}; "
            f"threshold {replayed.threshold[0]!s}, logged {logged.threshold[0]!s}; "
            f"incident {replayed.incident[0]!s}, logged {logged.incident[0]!s}; "
            f"logged by {self.build or 'an early version'}, this is {BUILD}"
        )


async def replay(log: Log, state: StreamState, until: Position, differ: Callable[[Difference], None]) -> None:
    """Take a state to a position; other tasks run in between.

    Raises StoreCorrupt if the log has a gap and UnreadableEvent if an event cannot be read; the state is then as of the
    last event before it.
    """
    while state.position < until:
        entries = await log.entries(state.position, PAGE_ENTRIES)
        if not entries:
            raise StoreCorrupt(log.stream, f"the log ends at {state.position}, its head should be {until}")
        run = Run(state, differ)
        try:
            for entry in entries:
                if run.end >= until:
                    break
                if not entry.follows(run.end):
                    found = entry.first_seq or entry.position
                    raise StoreCorrupt(log.stream, f"the log has a gap: {found} comes after {run.end}")
                await run.take(entry)
        except (StoreCorrupt, UnreadableEvent):
            await run.apply()
            raise
        await run.apply()


@dataclass(frozen=True, slots=True)
class Logged:
    """An entry of the log, and the event in it."""

    entry: Entry
    event: BatchEvent | LabelEvent | ConfigEvent

    @property
    def records(self) -> Records:
        """The records of the event. Raises UnreadableEvent."""
        return NO_RECORDS if isinstance(self.event, ConfigEvent) else read_records(self.event.records)


class Run:
    """Entries that follow each other, to be applied to a state.

    Short batches are observed together, which takes a fraction of the time: the cuts of batches change no result.
    """

    def __init__(self, state: StreamState, differ: Callable[[Difference], None]) -> None:
        self._state, self._differ = state, differ
        self._waiting: list[Logged] = []
        self._n_rows = 0
        self.end = state.position
        """The position of the last entry that was taken."""

    async def take(self, entry: Entry) -> None:
        """Take an entry; it is applied at the latest by apply. Raises UnreadableEvent."""
        logged = Logged(entry, read_event(entry.body))
        if self._waiting and not self._fits(logged):
            await self.apply()
        self._waiting.append(logged)
        self._n_rows += entry.n_samples
        self.end = entry.position

    def _fits(self, logged: Logged) -> bool:
        are_batches = isinstance(logged.event, BatchEvent) and isinstance(self._waiting[0].event, BatchEvent)
        return are_batches and self._n_rows + logged.entry.n_samples <= FIRST_ROWS

    async def apply(self) -> None:
        """Apply what was taken. Raises UnreadableEvent; the state is then as of the last event before it."""
        waiting, self._waiting, self._n_rows = self._waiting, [], 0
        await asyncio.sleep(0)
        if len(waiting) < 2 or not self._observe_together(waiting):
            for logged in waiting:
                await self._apply(logged)

    def _observe_together(self, waiting: Sequence[Logged]) -> bool:
        """Observe batches as one; False, with nothing changed, if one of them is wrong, or is not like the others."""
        began, detector = thread_time(), self._state.detector
        ends = list(accumulate(logged.entry.n_samples for logged in waiting))
        try:
            rows = read_all_records(
                [logged.event.records for logged in waiting if isinstance(logged.event, BatchEvent)]
            )
            if not np.array_equal(rows.seq, np.arange(detector.next_seq, detector.next_seq + ends[-1])):
                return False
            have_times = ~np.isnan(rows.time)
            if have_times.any() and not have_times.all():
                return False
            times = times_of(rows.time, detector.config)
            replayed = detector.observe(rows.x, times, held_out=rows.held_out).records
        except (ItanError, UnreadableEvent, ValueError):
            return False
        self._state.note_work(thread_time() - began)
        are_as_logged = bool(agree(rows, replayed).all())
        for logged, (begin, end) in zip(waiting, pairwise([0, *ends]), strict=True):
            self._note(logged, rows[begin:end], None if are_as_logged else replayed[begin:end])
        return True

    async def _apply(self, logged: Logged) -> None:
        """Apply one entry."""
        state, event, records = self._state, logged.event, logged.records
        replayed = None
        try:
            if isinstance(event, ConfigEvent):
                state.reconfigure(event.after)
            elif isinstance(event, LabelEvent):
                await feedback_slices(state.detector, records, event.labels, state.note_work)
            else:
                replayed = await self._observe(records)
        except ItanError as error:
            raise UnreadableEvent(f"the event at {logged.entry.position} cannot be replayed: {error}") from error
        self._note(logged, records, replayed)

    async def _observe(self, records: Records) -> Records:
        detector = self._state.detector
        if (first := int(records.seq[0])) != detector.next_seq:
            raise UnreadableEvent(f"samples {detector.next_seq} to {first - 1} are missing from the log")
        times = times_of(records.time, detector.config)
        observed = await observe_slices(
            detector, records.x, times, held_out=records.held_out, note_work=self._state.note_work
        )
        return await join_slices([out.records for out in observed])

    def _note(self, logged: Logged, records: Records, replayed: Records | None) -> None:
        """Take note that an entry was applied, and of records for its samples that may differ from the logged ones."""
        state, event, position = self._state, logged.event, logged.entry.position
        if isinstance(event, BatchEvent):
            if replayed is not None and len(differing := np.flatnonzero(~agree(records, replayed))):
                self._differ(Difference(position, event.build, records[differing], replayed[differing]))
            state.note_times(read_timestamps(event))
        if not isinstance(event, ConfigEvent):
            if state.incidents is not None:
                follow(state.incidents, event, records, position, state.detector.config, {})
            if state.recent is not None:
                state.recent.take(event, records)
        state.position = position
        state.unsaved_events += 1


def times_of(times: npt.NDArray[np.float64], config: DetectorConfig) -> npt.NDArray[np.float64] | None:
    """Give the times that the samples of a batch were observed with: all have one or none has, but for a calendar."""
    return None if config.calendar is None and np.isnan(times).any() else times


def agree(logged: Records, replayed: Records) -> npt.NDArray[np.bool_]:
    """Tell which samples have the same incidents, and equal scores, thresholds and severities, within TOLERANCE.

    Early versions logged no severity.
    """
    severity = np.isnan(logged.severity) | close(logged.severity, replayed.severity)
    scores = close(logged.score, replayed.score) & close(logged.threshold, replayed.threshold) & severity
    same: npt.NDArray[np.bool_] = scores & (logged.incident == replayed.incident) & (logged.event == replayed.event)
    return same


def close(logged: npt.NDArray[np.float64], replayed: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Tell which numbers are equal, within TOLERANCE."""
    near = np.abs(replayed - logged) <= TOLERANCE * np.maximum(1.0, np.abs(logged))
    return near | (np.isnan(logged) & np.isnan(replayed))
