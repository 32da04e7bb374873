"""Stores the snapshots of one stream, and knows when the next one is due."""

import logging
import math
from time import thread_time
from typing import Final

from app.storage import Snapshot
from app.streams.log.horizon import STEP, Horizon
from app.streams.open.retention import Retention
from app.streams.open.worker import Worker
from app.streams.state.state import StreamState
from core import InvalidState

WORTH: Final = 40
"""Of a busy stream a snapshot is due when a replay would take so many times as long as making the last one did."""
BUSY_SECONDS: Final = 600.0
"""A stream whose oldest unsaved change is older is not busy: it seldom needs a snapshot."""
RETRY_SECONDS: Final = 30.0
"""How long a stream whose state cannot be stored goes on until that is tried again."""

logger = logging.getLogger(__name__)


class SnapshotWriter:
    """Stores snapshots and trims the log.

    A snapshot is due when a replay of what came after the last one would take long. Clocks decide on nothing but that.
    """

    def __init__(self, stream: str, worker: Worker, retention: Retention) -> None:
        self._stream, self._worker, self._retention = stream, worker, retention
        self._store, self._clock, self._settings = worker.store, worker.clock, worker.settings
        self._last_took, self._saved_seq = 0.0, 0
        self._retry_at = -math.inf

    def begin(self, state: StreamState | None) -> None:
        """Begin with a state that was loaded, or with none."""
        self.forget()
        if state is not None:
            self._saved_seq = state.detector.next_seq
        if state is not None and state.unsaved_events:
            self.note_change(state)

    def forget(self) -> None:
        """Store nothing: another worker writes the stream, or nobody does."""
        self._worker.unsaved.forget(self._stream)

    def note_change(self, state: StreamState) -> None:
        """Note that the state has changed."""
        is_long = state.replay_seconds >= self._settings.snapshot_replay_seconds or self._is_urgent(state)
        now = self._clock.monotonic()
        self._worker.unsaved.note(self._stream, now, is_long=is_long)
        if is_long and self.is_due(state):
            self._worker.unsaved.note_due(self._stream, now)

    def is_due(self, state: StreamState) -> bool:
        """Tell whether what no snapshot holds would take long to replay, or is old."""
        now, since = self._clock.monotonic(), self._worker.unsaved.since(self._stream)
        if since is None or now < self._retry_at:
            return False
        age, seconds = now - since, state.replay_seconds
        if age >= self._settings.snapshot_age_seconds or self._is_urgent(state):
            return True
        is_worth_it = age >= BUSY_SECONDS or seconds >= WORTH * self._last_took
        return seconds >= self._settings.snapshot_replay_seconds and is_worth_it

    def _is_urgent(self, state: StreamState) -> bool:
        """Tell whether there is no good snapshot, so that each load takes a long replay, or whether trimming is due."""
        has_none = state.rebuilt is not None and not state.figures.snapshot_bytes
        return has_none or self._retention.is_trim_due(state.detector.next_seq - self._saved_seq)

    async def write(self, state: StreamState, *, as_base: bool = False, step: int = STEP) -> None:
        """Store a snapshot and trim the log. Raises InvalidState, and the log stays as it is."""
        next_seq, wanted = state.detector.next_seq, self._retention.horizon(state, step)
        horizon: Horizon | None = None
        while (fitted := await self._retention.fitted(horizon or wanted, next_seq)) != horizon:
            horizon = fitted  # later than before, while the log takes too many bytes
            await self._store_with(state, horizon, as_base=as_base)
        self._worker.metrics.snapshots.inc()
        state.note_saved(horizon)
        self._saved_seq = next_seq
        state.update_figures()
        self.forget()
        await self._retention.note_saved(state)

    async def _store_with(self, state: StreamState, horizon: Horizon, *, as_base: bool) -> None:
        """Store a snapshot and trim the log to a horizon."""
        began = thread_time()
        snapshot = Snapshot(state.position, state.to_bytes(horizon))
        self._last_took = thread_time() - began
        token, trim = self._worker.leases.token(self._stream), await self._retention.trimming(horizon)
        await self._store.save_snapshot(
            self._stream, snapshot, trim.keep_from_seq, token, as_base=as_base, keep_labels=trim.keep_labels
        )
        if self._settings.compact_log:
            self._worker.to_compact[self._stream] = snapshot.position, max(horizon.oldest_seq, trim.keep_from_seq)
        state.figures.snapshot_bytes = len(snapshot.body)

    def note_invalid(self, state: StreamState, error: InvalidState) -> None:
        """Go on without a snapshot, since the log holds everything; try again after a while."""
        self._worker.metrics.snapshot_failures.inc()
        self._retry_at = self._clock.monotonic() + RETRY_SECONDS
        if state.snapshot_failure is None:
            logger.warning("no snapshot of stream %s: %s", self._stream, error, extra={"stream": self._stream})
        state.snapshot_failure = error.reason
