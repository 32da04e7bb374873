"""Opens a stream: snapshot, then the later log replayed; or what can be rebuilt without loss."""

import logging
from dataclasses import dataclass
from hashlib import blake2b

from app.storage import Position, Snapshot, StoreCorrupt
from app.streams.errors import ReplayMismatch
from app.streams.log.events import UnreadableEvent
from app.streams.maintenance.starts import beginnings
from app.streams.open.marks import Rebuilt
from app.streams.open.replay import Difference, replay
from app.streams.open.state import StreamState
from app.streams.open.worker import Worker
from core import InvalidSnapshot

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opening:
    """Brings one stream into memory; a strict one refuses a replay that differs from the log."""

    stream: str
    worker: Worker
    is_strict: bool

    async def state(self, *, may_rebuild: bool) -> StreamState | None:
        """Give the stream as of its newest event; None: there is no such stream.

        Raises StoreCorrupt if something is damaged and cannot be rebuilt without loss, ReplayMismatch if the replay
        must be exact and is not.
        """
        try:
            state = await self._read()
        except StoreCorrupt as error:
            state = await self._rebuild(error.gap) if may_rebuild else None
            if state is None:
                raise
        if state is not None:
            self.worker.troubles.note_well(self.stream, is_mismatched=bool(state.replay_mismatches))
            self.worker.metrics.streams_opened.inc()
        return state

    async def _read(self) -> StreamState | None:
        loaded = await self.worker.store.load(self.stream)
        if loaded is None:
            return None
        snapshot, head = loaded
        try:
            state = StreamState.from_bytes(snapshot.body, snapshot.position)
            await replay(self.worker.store, self.stream, state, head, lambda found: self._note(state, found))
        except (InvalidSnapshot, UnreadableEvent) as error:
            raise StoreCorrupt(self.stream, str(error)) from error
        state.figures.snapshot_bytes = len(snapshot.body)
        return state

    def _note(self, state: StreamState, found: Difference) -> None:
        """Count and log samples that came out otherwise; raise ReplayMismatch if the operator wants it so."""
        state.replay_mismatches.add(found.reason, found.logged.seq.tolist(), self.worker.clock.steady())
        if self.worker.troubles.is_new(self.stream, found.position):
            self.worker.metrics.replay_mismatches[found.reason].inc(len(found.logged))
            logger.warning("stream %s: %s", self.stream, found, extra={"stream": self.stream})
        if self.is_strict:
            self.worker.troubles.note_well(self.stream, is_mismatched=True)
            raise ReplayMismatch(self.stream, str(found))

    async def _rebuild(self, reason: str) -> StreamState | None:
        """Rebuild a state that could not be read, if nothing is lost and each logged score comes out again."""
        worker, now = self.worker, self.worker.clock.monotonic()
        if worker.troubles.is_resting(self.stream, now):
            return None
        remains = await worker.store.inspect(self.stream)
        if remains is not None and remains.head is not None and not remains.faults:
            for state in await beginnings(worker.store, self.stream, remains):
                if await self._leads_to(state, remains.head):
                    self._tell(state, reason)
                    return state
        worker.troubles.note_vain(self.stream, reason, await seen_of(worker, self.stream), now)
        return None

    async def _leads_to(self, state: StreamState, head: Position) -> bool:
        differing: list[Difference] = []
        try:
            await replay(self.worker.store, self.stream, state, head, differing.append)
        except (StoreCorrupt, UnreadableEvent):
            return False
        return not differing

    def _tell(self, state: StreamState, reason: str) -> None:
        state.rebuilt = Rebuilt(self.worker.clock.steady(), reason)
        state.unsaved_events += 1  # so that a snapshot is stored, whether or not anything was replayed
        self.worker.metrics.streams_rebuilt.inc()
        text = "stream %s was rebuilt from its log, without loss: %s"
        logger.warning(text, self.stream, reason, extra={"stream": self.stream})


async def seen_of(worker: Worker, stream: str) -> object:
    """Give what tells whether a stream has changed in the store."""
    try:
        remains = await worker.store.inspect(stream)
    except StoreCorrupt as error:
        return str(error)
    return remains and (remains.head, mark_of(remains.snapshot), mark_of(remains.base), remains.faults)


def mark_of(snapshot: Snapshot | None) -> object:
    """Give a few bytes that tell a snapshot from others."""
    return snapshot and (snapshot.position, blake2b(snapshot.body, digest_size=16).digest())
