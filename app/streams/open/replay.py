"""Replays a log, and compares the scores with the logged ones."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

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
    read_event,
    read_records,
    read_timestamps,
)
from app.streams.log.incidents import follow
from app.streams.log.log import Log
from app.streams.slices import feedback_slices, join_slices, observe_slices
from app.streams.state.state import StreamState
from core import DetectorConfig, ItanError, Records

PAGE_ENTRIES = 64
TOLERANCE = 1e-9


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
        for entry in entries:
            if state.position >= until:
                return
            if not entry.follows(state.position):
                found = entry.first_seq or entry.position
                raise StoreCorrupt(log.stream, f"the log has a gap: {found} comes after {state.position}")
            await _apply(state, entry, differ)


async def _apply(state: StreamState, entry: Entry, differ: Callable[[Difference], None]) -> None:
    event = read_event(entry.body)
    try:
        if isinstance(event, ConfigEvent):
            state.reconfigure(event.after)
        else:
            await _take(state, event, entry.position, differ)
    except ItanError as error:
        raise UnreadableEvent(f"the event at {entry.position} cannot be replayed: {error}") from error
    state.position = entry.position
    state.unsaved_events += 1
    await asyncio.sleep(0)


async def _take(
    state: StreamState, event: BatchEvent | LabelEvent, position: Position, differ: Callable[[Difference], None]
) -> None:
    records = read_records(event.records)
    if isinstance(event, BatchEvent):
        await _observe(state, event, records, position, differ)
    else:
        await feedback_slices(state.detector, records, event.labels)
    if state.incidents is not None:
        follow(state.incidents, event, records, position, state.detector.config, {})
    if state.recent is not None:
        state.recent.take(event, records)


async def _observe(
    state: StreamState, event: BatchEvent, records: Records, position: Position, differ: Callable[[Difference], None]
) -> None:
    if int(records.seq[0]) != state.detector.next_seq:
        raise UnreadableEvent(
            f"samples {state.detector.next_seq} to {int(records.seq[0]) - 1} are missing from the log"
        )
    times = times_of(records, state.detector.config)
    observed = await observe_slices(state.detector, records.x, times, held_out=records.held_out)
    replayed = await join_slices([out.records for out in observed])
    differing = np.flatnonzero(~agree(records, replayed))
    if len(differing):
        differ(Difference(position, event.build, records[differing], replayed[differing]))
    state.note_times(read_timestamps(event))


def times_of(records: Records, config: DetectorConfig) -> npt.NDArray[np.float64] | None:
    """Give the times that the samples of a batch were observed with: all have one or none has, but for a calendar."""
    if config.calendar is not None:
        return records.time
    return None if np.isnan(records.time).any() else records.time


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
