"""Stores the snapshots of one stream, and knows when the next one is due."""

import logging
import math

from app.storage import Snapshot
from app.streams.log.horizon import STEP, Horizon
from app.streams.open.retention import Retention
from app.streams.open.worker import Worker
from app.streams.state.state import StreamState
from core import InvalidState

logger = logging.getLogger(__name__)


class SnapshotWriter:
    """Stores snapshots and trims the log; unsaved_since is the time of the oldest change that no snapshot holds."""

    def __init__(self, stream: str, worker: Worker, retention: Retention) -> None:
        self._stream, self._worker, self._retention = stream, worker, retention
        self._store, self._clock, self._settings = worker.store, worker.clock, worker.settings
        self.unsaved_since: float | None = None
        self._retry_at = -math.inf

    def begin(self, state: StreamState | None) -> None:
        """Begin with a state that was loaded, or with none."""
        self.unsaved_since = self._clock.monotonic() if state is not None and state.unsaved_events else None

    def note_change(self) -> None:
        """Note that the state has changed."""
        if self.unsaved_since is None:
            self.unsaved_since = self._clock.monotonic()

    def is_due(self, state: StreamState) -> bool:
        """Tell whether enough events, or enough time, have passed since the last snapshot."""
        now = self._clock.monotonic()
        if self.unsaved_since is None or now < self._retry_at:
            return False
        if state.rebuilt is not None and not state.figures.snapshot_bytes:
            return True  # until there is a good snapshot, each load takes a long replay
        is_long = now - self.unsaved_since >= self._settings.snapshot_every_seconds
        return is_long or state.unsaved_events >= self._settings.snapshot_every_events

    async def write(self, state: StreamState, *, as_base: bool = False, step: int = STEP) -> None:
        """Store a snapshot and trim the log. Raises InvalidState, and the log stays as it is."""
        horizon = await self._store_with(state, self._retention.horizon(state, step), as_base=as_base)
        self._worker.metrics.snapshots.inc()
        state.horizon, state.unsaved_events, state.snapshot_failure = horizon, 0, None
        state.update_figures()
        self.unsaved_since = None
        await self._retention.note_saved(state)

    async def _store_with(self, state: StreamState, horizon: Horizon, *, as_base: bool) -> Horizon:
        """Store a snapshot and trim the log to a horizon, or to a later one if it would take too many bytes."""
        horizon = await self._retention.fitted(horizon, state.detector.next_seq)
        snapshot = Snapshot(state.position, state.to_bytes(horizon))
        token, trim = self._worker.leases.token(self._stream), await self._retention.trimming(horizon)
        await self._store.save_snapshot(
            self._stream, snapshot, trim.keep_from_seq, token, as_base=as_base, keep_labels=trim.keep_labels
        )
        state.figures.snapshot_bytes = len(snapshot.body)
        fitted = await self._retention.fitted(horizon, state.detector.next_seq)
        return horizon if fitted == horizon else await self._store_with(state, fitted, as_base=as_base)

    def note_invalid(self, state: StreamState, error: InvalidState) -> None:
        """Go on without a snapshot, since the log holds everything; try again when the next one would be due."""
        self._worker.metrics.snapshot_failures.inc()
        self._retry_at = self._clock.monotonic() + self._settings.snapshot_every_seconds
        if state.snapshot_failure is None:
            logger.warning("no snapshot of stream %s: %s", self._stream, error, extra={"stream": self._stream})
        state.snapshot_failure = error.reason
