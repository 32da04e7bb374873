"""Opens a stream: snapshot, then the later log replayed."""

import asyncio
import logging
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.build import BUILD
from app.storage.base import Entry, Position, StoreCorrupt
from app.streams.errors import ReplayMismatch
from app.streams.events import BatchEvent, UnreadableEvent, read_event, read_records, read_timestamps
from app.streams.state import StreamState
from app.streams.stepping import feedback_slices, join_slices, observe_slices
from app.streams.worker import Worker
from core import InvalidSnapshot, ItanError, Records

PAGE_ENTRIES = 64
TOLERANCE = 1e-9

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opening:
    """Brings one stream into memory."""

    stream: str
    worker: Worker

    async def state(self) -> StreamState | None:
        """Give the stream as of its newest event; None: there is no such stream.

        Raises StoreCorrupt if the log has a gap, ReplayMismatch if the replay must be exact and is not.
        """
        loaded = await self.worker.store.load(self.stream)
        if loaded is None:
            return None
        snapshot, head = loaded
        try:
            state = StreamState.from_bytes(snapshot.body, snapshot.position)
            await self._replay(state, head)
        except (InvalidSnapshot, UnreadableEvent) as error:
            raise StoreCorrupt(self.stream, str(error)) from error
        state.figures.snapshot_bytes = len(snapshot.body)
        self.worker.metrics.streams_opened.inc()
        return state

    async def _replay(self, state: StreamState, head: Position) -> None:
        while state.position < head:
            entries = await self.worker.store.entries(self.stream, state.position, PAGE_ENTRIES)
            if not entries:
                raise StoreCorrupt(self.stream, f"the log ends at {state.position}, its head should be {head}")
            for entry in entries:
                await self._apply(state, entry)

    async def _apply(self, state: StreamState, entry: Entry) -> None:
        event = read_event(entry.body)
        try:
            if isinstance(event, BatchEvent):
                await self._observe(state, event, entry.position)
            else:
                await feedback_slices(state.detector, read_records(event.records), event.labels)
        except ItanError as error:
            raise UnreadableEvent(f"the event at {entry.position} cannot be replayed: {error}") from error
        state.position = entry.position
        state.unsaved_events += 1
        await asyncio.sleep(0)

    async def _observe(self, state: StreamState, event: BatchEvent, position: Position) -> None:
        records = read_records(event.records)
        if int(records.seq[0]) != state.detector.next_seq:
            raise UnreadableEvent(
                f"samples {state.detector.next_seq} to {int(records.seq[0]) - 1} are missing from the log"
            )
        observed = await observe_slices(state.detector, records.x, times_of(records))
        replayed = await join_slices([out.records for out in observed])
        differing = np.flatnonzero(~agree(records, replayed))
        if len(differing):
            self._note(state, event, position, records[differing], replayed[differing])
        state.newest_timestamp = newest(state.newest_timestamp, read_timestamps(event))

    def _note(
        self, state: StreamState, event: BatchEvent, position: Position, logged: Records, replayed: Records
    ) -> None:
        """Count and log samples that came out otherwise; raise ReplayMismatch if the operator wants it so."""
        reason = "other" if event.build == BUILD else "version"
        state.replay_mismatches[reason] += len(logged)
        what = (
            f"{len(logged)} replayed samples differ from the log, the first of them {logged.seq[0]}: "
            f"score {replayed.score[0]!s}, logged {logged.score[0]!s}; "
            f"threshold {replayed.threshold[0]!s}, logged {logged.threshold[0]!s}; "
            f"logged by {event.build or 'an early version'}, this is {BUILD}"
        )
        if self.worker.mismatches.note(self.stream, position):
            self.worker.metrics.replay_mismatches[reason].inc(len(logged))
            logger.warning("stream %s: %s", self.stream, what, extra={"stream": self.stream})
        if self.worker.settings.strict_replay:
            raise ReplayMismatch(self.stream, what)


def times_of(records: Records) -> npt.NDArray[np.float64] | None:
    """Give the times that the samples of a batch were observed with, all or none."""
    return None if np.isnan(records.time).any() else records.time


def agree(logged: Records, replayed: Records) -> npt.NDArray[np.bool_]:
    """Tell which samples have equal scores and thresholds but for last bits."""
    return close(logged.score, replayed.score) & close(logged.threshold, replayed.threshold)


def close(logged: npt.NDArray[np.float64], replayed: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Tell which numbers are equal but for last bits."""
    near = np.abs(replayed - logged) <= TOLERANCE * np.maximum(1.0, np.abs(logged))
    return near | (np.isnan(logged) & np.isnan(replayed))


def newest(known: float | None, timestamps: npt.NDArray[np.float64] | None) -> float | None:
    """Give the newest of the timestamps seen so far."""
    if timestamps is None:
        return known
    latest = float(timestamps.max())
    return latest if known is None else max(known, latest)
