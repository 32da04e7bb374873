"""One stream: its state in memory, kept in step with its log."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial

from app.figures import StreamFigures
from app.storage import (
    INCIDENTS_KEPT,
    NO_INCIDENTS,
    NO_LABELS,
    START,
    Append,
    Bound,
    DocumentKind,
    Entry,
    Fenced,
    IncidentRow,
    Snapshot,
    StaleWriter,
    StoreCorrupt,
    StoreUnavailable,
    TooManyStreams,
)
from app.streams.errors import StreamAppeared, UnknownStream
from app.streams.log.horizon import STEP
from app.streams.log.incidents import Incident
from app.streams.log.reader import LogReader
from app.streams.open.backoff import Backoff
from app.streams.open.loader import StateLoader
from app.streams.open.models import Defaults
from app.streams.open.retention import Retention
from app.streams.open.schedule import Period
from app.streams.open.snapshot_writer import SnapshotWriter
from app.streams.open.summary import Summary, summary_of
from app.streams.open.worker import Worker
from app.streams.state.state import StreamState
from core import Detector, InvalidState

RETRY_SECONDS = 5.0
COPY_SECONDS = 1.0
"""How long a copy of a stream that another worker writes serves reads."""

logger = logging.getLogger(__name__)


class Session:
    """A stream between the first request for it and its eviction.

    Whoever changes the stream holds `lock` and the stream's lease. The state never gets ahead of the log unnoticed: if
    it is not certain that an event was logged, or if the lease is lost, the state serves reads only, and is loaded
    again before the next change.
    """

    def __init__(self, stream: str, worker: Worker) -> None:
        self.stream = stream
        self._worker = worker
        self.store = worker.store
        self.clock = worker.clock
        self.settings = worker.settings
        self.metrics = worker.metrics
        self.leases = worker.leases
        self.lock = asyncio.Lock()
        self.users = 0
        self.used_at = self.clock.monotonic()
        self.counted_bytes = 0
        """What the registry has counted of this stream's memory."""
        self.log = worker.log(stream, lambda: self._is_current)
        self.reader = LogReader(self.log)
        self.retention = Retention(worker, self.log)
        self.snapshots = SnapshotWriter(stream, worker, self.retention)
        self.backoff = Backoff(self.clock)
        self.summary_is_due = False
        """Whether the state has changed since the store got a summary of it."""
        self.written_at: float | None = None
        """When the log was last written, as far as this session knows."""
        self._state: StreamState | None = None
        self._is_trusted = False
        self._load_again_at = -math.inf
        self._acknowledged = START

    @property
    def is_open(self) -> bool:
        """Tell whether the stream is in memory."""
        return self._state is not None

    @property
    def current_state(self) -> StreamState | None:
        """Give the state in memory if it is known to be the newest."""
        return self._state if self._is_current else None

    @property
    def _is_current(self) -> bool:
        return self._is_trusted and self.leases.holds(self.stream)

    @property
    def is_idle(self) -> bool:
        """Tell whether the newest state is in memory, and nobody uses it or waits to."""
        return self.current_state is not None and not self.users and not self.lock.locked()

    @property
    def figures(self) -> StreamFigures | None:
        """Give the figures for the metrics; None while the stream is not in memory."""
        return None if self._state is None else self._state.figures

    @property
    def memory_bytes(self) -> int:
        """Give the bytes of the stream in memory; 0 while it is not there."""
        if self._state is None:
            return 0
        return self._state.memory_bytes() + (self.log.archived.size_bytes if self.log.archived else 0)

    @property
    def snapshot_is_due(self) -> bool:
        """Tell whether it is time for a snapshot."""
        return self._state is not None and self.snapshots.is_due(self._state)

    def summary(self) -> Summary | None:
        """Describe the stream; None unless the newest state is in memory."""
        state = self.current_state
        if state is None:
            return None
        return summary_of(self.stream, state, self.oldest_to_label(state), self.written_at)

    def oldest_to_label(self, state: StreamState) -> int:
        """Give the oldest sample that can be labelled; it does not depend on when the log is trimmed."""
        return state.horizon.oldest_to_label(state.detector.next_seq, self.settings.horizon_samples)

    async def state(self, *, is_strict: bool | None = None) -> StreamState:
        """Give the newest state, for a change. Raises UnknownStream or, if another worker writes it, LeaseHeld.

        is_strict overrides the setting that refuses a replay that differs from the log.
        """
        if self._state is None or not self._is_current:
            await self.leases.acquire(self.stream)
            self.place(await self._loader(is_strict).load(may_rebuild=True))
            self._note_setback()
        if self._state is None:
            raise UnknownStream(self.stream)
        return self._state

    async def state_to_change(self) -> StreamState:
        """Give the newest state; during a pause after refused writes, load nothing and raise StoreUnavailable."""
        if not self._is_current:
            self.backoff.check()
        return await self.state()

    async def take_free(self) -> None:
        """Take the lease of a stream that no other worker holds. Raises LeaseHeld; its holder is asked for nothing."""
        if not self._is_current:
            self.backoff.check()
            await self.leases.take_free(self.stream)

    async def readable(self) -> StreamState:
        """Give a state to read from; while the store is down, the one in memory."""
        # a store that hangs takes seconds to fail: one read now and then finds out, no other waits for it
        has_to_wait = self.lock.locked() or self.clock.monotonic() < self._load_again_at
        if self._state is not None and (self._is_current or has_to_wait):
            return self._state
        async with self.lock:
            try:
                return await self.latest()
            except StoreUnavailable:
                if self._state is None:
                    raise
                self._load_again_at = self.clock.monotonic() + RETRY_SECONDS
                return self._state

    async def latest(self) -> StreamState:
        """Give the newest state, for a read, whichever worker writes the stream."""
        if self.leases.holds(self.stream):
            return await self.state()
        try:
            self.place(await self._loader().load(may_rebuild=False))
        except StoreCorrupt:
            return await self.state()  # only the worker that writes a stream may rebuild it
        self._is_trusted = False
        self.snapshots.forget()
        self._load_again_at = self.clock.monotonic() + COPY_SECONDS
        if self._state is None:
            raise UnknownStream(self.stream)
        return self._state

    def _loader(self, is_strict: bool | None = None) -> StateLoader:
        return StateLoader(self.stream, self._worker, self.settings.strict_replay if is_strict is None else is_strict)

    def place(self, state: StreamState | None) -> None:
        """Take a state as the newest; None if there is no such stream."""
        self._state, self._is_trusted = state, True
        if self.log.archived is not None:
            self.log.archived.forget()
        self.summary_is_due, self.written_at = state is not None, None
        if state is not None:
            state.figures.stream = self.stream
            state.update_figures()
            state.figures.take_costs(state.detector.costs())
        self.snapshots.begin(state)

    def _note_setback(self) -> None:
        """Count it if the store has lost what it had acknowledged, as a fail-over without that promise can."""
        position = START if self._state is None else self._state.position
        if position < self._acknowledged:
            self.metrics.setbacks.inc()
            what = f"the store is back at {position} from {self._acknowledged}"
            logger.warning("stream %s: %s", self.stream, what, extra={"stream": self.stream})
        self._acknowledged = position

    def forget(self) -> None:
        """Drop the state and release the lease; the next use loads it."""
        self.place(None)
        self._is_trusted = False
        self.leases.release(self.stream)

    def start_over(self, state: StreamState | None) -> None:
        """Go on with a state whose log begins anew, or with none after the stream was deleted."""
        if state is None:
            self.forget()
        else:
            self.place(state)
            self.written_at = self.clock.now()
        self._acknowledged = START if state is None else state.position
        self._worker.health.forget(self.stream)
        self._worker.subscriptions.notify(self.stream, is_new_log=True)

    @contextmanager
    def ahead_of_log(self) -> Iterator[None]:
        """Distrust the state, and get a new lease, if the block that changes it does not come to its end."""
        try:
            yield
        except TooManyStreams:
            raise  # there is nothing yet that could be ahead
        except BaseException as error:
            self.distrust(error)
            raise

    def distrust(self, error: BaseException) -> None:
        """Load the state again, with a new lease, before the next change: this error left it ahead of the log."""
        if isinstance(error, StoreUnavailable):
            self.backoff.note_refusal(error)
        self._is_trusted, self._load_again_at = False, -math.inf
        self.leases.drop(self.stream)

    async def create(self, state: StreamState, bounds: Sequence[Bound]) -> None:
        """Make a new stream known to the store. Raises TooManyStreams, or StreamAppeared if there is one by now."""
        snapshot = state.first_snapshot or Snapshot(state.position, state.to_bytes())
        bounds = (Bound("", self.settings.max_streams), *bounds)
        with self.ahead_of_log():  # a creation that is not confirmed may be found by the next try
            is_new = await self.store.create(self.stream, snapshot, self.leases.token(self.stream), bounds)
        if not is_new:
            self.forget()
            raise StreamAppeared(self.stream)
        state.first_snapshot = None
        self.place(state)
        self.written_at = self.clock.now()

    async def append(
        self,
        state: StreamState,
        entry: Entry,
        labels: Mapping[int, bytes] = NO_LABELS,
        incidents: Sequence[Incident] = (),
    ) -> None:
        """Log an event that the engine has taken, with the incidents that it changes; only then is it acknowledged."""
        await self.store.append(*self.to_append(state, entry, labels, incidents))
        self.note_appended(state, entry)

    def to_append(
        self,
        state: StreamState,
        entry: Entry,
        labels: Mapping[int, bytes] = NO_LABELS,
        incidents: Sequence[Incident] = (),
    ) -> Append:
        """Give what the store is to append for an event."""
        token = self.leases.token(self.stream)
        return Append(self.stream, state.position, entry, labels, token, self.rows(incidents))

    def note_appended(self, state: StreamState, entry: Entry) -> None:
        """Take note that an event is in the log."""
        self.backoff.note_success()
        state.position = self._acknowledged = entry.position
        state.unsaved_events += 1
        self.summary_is_due, self.written_at = True, self.clock.now()
        self.snapshots.note_change(state)
        self._worker.subscriptions.notify(self.stream)

    def rows(self, incidents: Sequence[Incident]) -> Sequence[IncidentRow]:
        """Give changed incidents as the index takes them: the newest, as many as it keeps."""
        if not incidents:
            return NO_INCIDENTS
        is_news = self._worker.tells_of(self.stream)
        newest = sorted(incidents, key=lambda incident: incident.seq)[-INCIDENTS_KEPT:]
        return [incident.row(is_news=is_news) for incident in newest]

    @asynccontextmanager
    async def erasing(self) -> AsyncIterator[None]:
        """Erase the stream's archived files after the block that deletes the stream, even if that is the last we do."""
        if self.log.archived is None:
            yield
            return
        await self.store.put_document(DocumentKind.ERASURE, self.stream, repr(self.clock.now()).encode())
        yield
        self._worker.to_erase.set()

    async def save(self) -> None:
        """Store a snapshot if the state has changed and this worker writes the stream."""
        state = self._state
        if self._is_trusted and not self._is_current:
            self.snapshots.forget()  # another worker's to store now
        if state is not None and self._is_current and state.unsaved_events:
            await self.store_if_valid(state)

    async def store_if_valid(self, state: StreamState, *, step: int = STEP) -> None:
        """Store a snapshot; if the state could not be read back, note that and keep the log."""
        try:
            await self.store_snapshot(state, step=step)
        except InvalidState as error:
            self.snapshots.note_invalid(state, error)

    async def store_snapshot(self, state: StreamState, *, as_base: bool = False, step: int = STEP) -> None:
        """Store a snapshot; forget the stream if another worker writes it by now. Raises InvalidState."""
        try:
            await self.snapshots.write(state, as_base=as_base, step=step)
        except (StaleWriter, Fenced):
            self.forget()
            raise

    async def periods(self) -> Sequence[Period]:
        """Give when the stream is under maintenance."""
        return (await self._worker.schedule()).of(self.stream)

    async def defaults(self) -> Defaults:
        """Give what the stream gets, if it is new, unless it is given something else."""
        return await self._worker.defaults_of(self.stream)

    async def model_of(self, stream: str) -> Detector:
        """Give the detector of another stream, to be read only, without its lock or lease. Raises UnknownStream."""
        loader = StateLoader(stream, self._worker, is_strict=False)
        return await self._worker.models.find(stream, partial(loader.load, may_rebuild=False))

    def mark_readable(self) -> None:
        """Note that the stream can be read, and whether its replay differs from its log."""
        is_mismatched = self._state is not None and bool(self._state.replay_mismatches)
        self._worker.health.mark_readable(self.stream, is_mismatched=is_mismatched)
