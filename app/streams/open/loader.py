"""Loads a stream: its snapshot and a replay of the later log, or what can be rebuilt without loss."""

import logging
from dataclasses import dataclass

from app.storage import Position, StoreCorrupt
from app.streams.errors import ReplayMismatch
from app.streams.log.events import UnreadableEvent
from app.streams.log.incidents import Index
from app.streams.log.log import Log
from app.streams.log.recent import recent_of
from app.streams.open.fingerprint import fingerprint
from app.streams.open.recovery import recovery_points
from app.streams.open.replay import Difference, replay
from app.streams.open.worker import Worker
from app.streams.state.integrity import Rebuilt
from app.streams.state.state import StreamState
from core import InvalidSnapshot

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StateLoader:
    """Loads one stream; a strict loader refuses a replay that differs from the log."""

    stream: str
    worker: Worker
    is_strict: bool

    @property
    def _log(self) -> Log:
        return self.worker.log(self.stream)

    async def load(self, *, may_rebuild: bool) -> StreamState | None:
        """Give the state after the newest event; None if there is no such stream.

        Raises StoreCorrupt if the stream is damaged and cannot be rebuilt without loss, and ReplayMismatch if the
        replay must be exact and is not.
        """
        try:
            state = await self._replayed()
        except StoreCorrupt as error:
            state = await self._rebuild(error.gap) if may_rebuild else None
            if state is None:
                raise
        if state is not None:
            if may_rebuild and (state.incidents is None or state.recent is None):
                await self._look_back(state)
            self.worker.health.mark_readable(self.stream, is_mismatched=bool(state.replay_mismatches))
            self.worker.metrics.streams_opened.inc()
        return state

    async def _replayed(self) -> StreamState | None:
        loaded = await self.worker.store.load(self.stream)
        if loaded is None:
            return None
        snapshot, head = loaded
        try:
            state = StreamState.from_bytes(snapshot.body, snapshot.position)
            await replay(self._log, state, head, lambda found: self._note_mismatch(state, found))
        except (InvalidSnapshot, UnreadableEvent) as error:
            raise StoreCorrupt(self.stream, str(error)) from error
        state.figures.snapshot_bytes = len(snapshot.body)
        return state

    async def _look_back(self, state: StreamState) -> None:
        """Make what an earlier version that wrote the stream last did not know from the end of the log."""
        if state.incidents is None:
            await self._index_incidents(state)
        state.recent = await recent_of(self._log, state.detector.next_seq)
        state.unsaved_events += 1  # so that a snapshot is stored that knows it

    async def _index_incidents(self, state: StreamState) -> None:
        """Make the index of incidents."""
        index = Index(state.detector.config)
        async for entry in self._log.newest_entries(state.detector.next_seq):
            index.take(entry)
        rows = [incident.row() for incident in index.rows.values()]
        if rows:
            await self.worker.store.put_incidents(self.stream, rows, self.worker.leases.token(self.stream))
        state.incidents = index.ledger

    def _note_mismatch(self, state: StreamState, found: Difference) -> None:
        """Count and log samples with other scores than before. Raises ReplayMismatch if strict."""
        state.replay_mismatches.add(found.reason, found.logged.seq.tolist(), self.worker.clock.steady())
        if self.worker.health.is_new_mismatch(self.stream, found.position):
            self.worker.metrics.replay_mismatches[found.reason].inc(len(found.logged))
            logger.warning("stream %s: %s", self.stream, found, extra={"stream": self.stream})
        if self.is_strict:
            self.worker.health.mark_readable(self.stream, is_mismatched=True)
            raise ReplayMismatch(self.stream, str(found))

    async def _rebuild(self, reason: str) -> StreamState | None:
        """Rebuild a state that could not be read, if nothing is lost and a replay gives every logged score again."""
        worker, now = self.worker, self.worker.clock.monotonic()
        if worker.health.is_waiting(self.stream, now):
            return None
        remains = await worker.store.inspect(self.stream)
        if remains is not None and remains.head is not None and not remains.faults:
            for state in await recovery_points(self._log, remains):
                if await self._replays_exactly(state, remains.head):
                    self._note_rebuild(state, reason)
                    return state
        worker.health.mark_rebuild_failed(self.stream, reason, await fingerprint(worker.store, self.stream), now)
        return None

    async def _replays_exactly(self, state: StreamState, head: Position) -> bool:
        differing: list[Difference] = []
        try:
            await replay(self._log, state, head, differing.append)
        except (StoreCorrupt, UnreadableEvent):
            return False
        return not differing

    def _note_rebuild(self, state: StreamState, reason: str) -> None:
        state.rebuilt = Rebuilt(self.worker.clock.steady(), reason)
        state.unsaved_events += 1  # so that a snapshot is stored even if nothing was replayed
        self.worker.metrics.streams_rebuilt.inc()
        text = "stream %s was rebuilt from its log, without loss: %s"
        logger.warning(text, self.stream, reason, extra={"stream": self.stream})
