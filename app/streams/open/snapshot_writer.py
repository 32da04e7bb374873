"""Stores the snapshots of one stream, and knows when the next one is due."""

import logging
import math

from app.storage import Snapshot
from app.streams.log.horizon import STEP
from app.streams.open.worker import Worker
from app.streams.state.state import StreamState
from core import InvalidState

logger = logging.getLogger(__name__)


class SnapshotWriter:
    """Stores snapshots and trims the log; unsaved_since is the time of the oldest change that no snapshot holds."""

    def __init__(self, stream: str, worker: Worker) -> None:
        self._stream, self._worker = stream, worker
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
        """Store a snapshot and trim the log to the label horizon. Raises InvalidState, and the log stays as it is."""
        horizon = state.horizon.advanced(
            state.detector.next_seq,
            self._clock.steady(),
            self._settings.horizon_samples,
            self._settings.label_horizon_seconds,
            step,
        )
        snapshot = Snapshot(state.position, state.to_bytes(horizon))
        token = self._worker.leases.token(self._stream)
        await self._store.save_snapshot(self._stream, snapshot, horizon.oldest_seq, token, as_base=as_base)
        self._worker.metrics.snapshots.inc()
        state.horizon, state.unsaved_events, state.snapshot_failure = horizon, 0, None
        state.update_figures()
        state.figures.snapshot_bytes = len(snapshot.body)
        self.unsaved_since = None

    def note_invalid(self, state: StreamState, error: InvalidState) -> None:
        """Go on without a snapshot, since the log holds everything; try again when the next one would be due."""
        self._worker.metrics.snapshot_failures.inc()
        self._retry_at = self._clock.monotonic() + self._settings.snapshot_every_seconds
        if state.snapshot_failure is None:
            logger.warning("no snapshot of stream %s: %s", self._stream, error, extra={"stream": self._stream})
        state.snapshot_failure = error.reason
