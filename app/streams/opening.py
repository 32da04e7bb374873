"""Opens a stream: snapshot, then the later log replayed."""

import asyncio
import logging
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.metrics import Metrics
from app.storage.base import Entry, Position, Store, StoreCorrupt
from app.streams.events import BatchEvent, UnreadableEvent, read_event, read_records, read_timestamps
from app.streams.state import StreamState
from app.streams.stepping import feedback_slices, observe_slices
from core import InvalidSnapshot, ItanError

PAGE_ENTRIES = 64
TOLERANCE = 1e-9

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opening:
    """Brings one stream into memory."""

    store: Store
    stream: str
    metrics: Metrics

    async def state(self) -> StreamState | None:
        """Give the stream as of its newest event (None: there is no such stream); StoreCorrupt if the log has a gap."""
        loaded = await self.store.load(self.stream)
        if loaded is None:
            return None
        snapshot, head = loaded
        try:
            state = StreamState.from_bytes(snapshot.body, snapshot.position)
            await self._replay(state, head)
        except (InvalidSnapshot, UnreadableEvent) as error:
            raise StoreCorrupt(self.stream, str(error)) from error
        return state

    async def _replay(self, state: StreamState, head: Position) -> None:
        while state.position < head:
            entries = await self.store.entries(self.stream, state.position, PAGE_ENTRIES)
            if not entries:
                raise StoreCorrupt(self.stream, f"the log ends at {state.position}, its head should be {head}")
            for entry in entries:
                await self._apply(state, entry)

    async def _apply(self, state: StreamState, entry: Entry) -> None:
        event = read_event(entry.body)
        try:
            if isinstance(event, BatchEvent):
                await self._observe(state, event)
            else:
                await feedback_slices(state.detector, read_records(event.records), event.labels)
        except ItanError as error:
            raise UnreadableEvent(f"the event at {entry.position} cannot be replayed: {error}") from error
        state.position = entry.position
        state.unsaved_events += 1
        await asyncio.sleep(0)

    async def _observe(self, state: StreamState, event: BatchEvent) -> None:
        records = read_records(event.records)
        if int(records.seq[0]) != state.detector.next_seq:
            raise UnreadableEvent(
                f"samples {state.detector.next_seq} to {int(records.seq[0]) - 1} are missing from the log"
            )
        replayed = await observe_slices(state.detector, records.x)
        self._compare(records.score, np.concatenate([part.score for part in replayed]))
        state.newest_timestamp = newest(state.newest_timestamp, read_timestamps(event))

    def _compare(self, logged: npt.NDArray[np.float64], replayed: npt.NDArray[np.float64]) -> None:
        differing = int((~agree(logged, replayed)).sum())
        if differing:
            self.metrics.replay_mismatches.inc(differing)
            logger.warning("stream %s: %d replayed scores differ from the logged ones", self.stream, differing)


def agree(logged: npt.NDArray[np.float64], replayed: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Tell which scores are equal but for last bits."""
    close = np.abs(replayed - logged) <= TOLERANCE * np.maximum(1.0, np.abs(logged))
    return close | (np.isnan(logged) & np.isnan(replayed))


def newest(known: float | None, timestamps: npt.NDArray[np.float64] | None) -> float | None:
    """Give the newest of the timestamps seen so far."""
    if timestamps is None:
        return known
    latest = float(timestamps.max())
    return latest if known is None else max(known, latest)
