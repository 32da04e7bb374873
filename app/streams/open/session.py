"""One stream: its state in memory, kept in step with its log."""

import asyncio
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from app.metrics import StreamFigures
from app.storage import (
    NO_LABELS,
    START,
    Bound,
    Entry,
    Fenced,
    Position,
    Snapshot,
    StaleWriter,
    StoreCorrupt,
    StoreUnavailable,
    TooManyStreams,
)
from app.streams.errors import NotSilent, StreamAppeared, UnknownStream
from app.streams.log.events import read_event
from app.streams.log.horizon import SILENT_STEP, STEP
from app.streams.log.reader import LogReader
from app.streams.open.loader import StateLoader
from app.streams.open.state import StreamState, new_state
from app.streams.open.worker import Worker
from core import Detector, DetectorConfig, InvalidState

RETRY_SECONDS = 5.0
COPY_SECONDS = 1.0

logger = logging.getLogger(__name__)


class Session:
    """A stream between the first request for it and its eviction.

    Whatever changes it holds `lock`, and the stream's lease. Memory never gets ahead of the log unnoticed: when an
    event is not known to be kept, or the lease is lost, the state serves reads at most, and is loaded again before the
    next change.
    """

    def __init__(self, stream: str, worker: Worker) -> None:
        self.stream = stream
        self._worker = worker
        self.store = worker.store
        self.clock = worker.clock
        self.settings = worker.settings
        self.metrics = worker.metrics
        self.leases = worker.leases
        self.subscriptions = worker.subscriptions
        self.lock = asyncio.Lock()
        self.users = 0
        self.used_at = self.clock.monotonic()
        self.weight = 0
        self.log = LogReader(self.store, stream)
        self.unsaved_since: float | None = None
        self._save_again_at = -math.inf
        self.figures: StreamFigures | None = None
        self._state: StreamState | None = None
        self._current = False
        self._look_again_at = -math.inf
        self._refused_writes = 0  # in a row
        self._write_again_at = -math.inf
        self._refusal: StoreUnavailable | None = None
        self._acknowledged = START
        self._pending_creation: Snapshot | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether the stream is in memory."""
        return self._state is not None

    @property
    def present_state(self) -> StreamState | None:
        """Give the state in memory if it is known to be the newest."""
        return self._state if self._is_current else None

    @property
    def memory_bytes(self) -> int:
        """Give the bytes of the stream in memory; 0 while it is not there."""
        return 0 if self._state is None else self._state.memory_bytes()

    @property
    def snapshot_is_due(self) -> bool:
        """Tell whether enough events, or enough time, have passed since the last snapshot."""
        if self._state is None or self.unsaved_since is None or self.clock.monotonic() < self._save_again_at:
            return False
        if self._state.rebuilt is not None and not self._state.figures.snapshot_bytes:
            return True  # until there is a good snapshot, each opening takes a long replay
        waited = self.clock.monotonic() - self.unsaved_since
        many = self._state.unsaved_events >= self.settings.snapshot_every_events
        return many or waited >= self.settings.snapshot_every_seconds

    @property
    def _is_current(self) -> bool:
        return self._current and self.leases.holds(self.stream)

    def oldest_to_label(self, state: StreamState) -> int:
        """Give the oldest sample that can be labelled: when the log is trimmed must not decide what a label does."""
        return state.horizon.oldest_to_label(state.detector.next_seq, self.settings.horizon_samples)

    async def state(self, *, is_strict: bool | None = None) -> StreamState:
        """Give the state as of the log's head, for a change; UnknownStream if there is none, LeaseHeld if not ours.

        is_strict says whether a replay that differs from the log is refused, in place of the setting.
        """
        if self._state is None or not self._is_current:
            await self.leases.acquire(self.stream)
            self._place(await self._loader(is_strict).load(may_rebuild=True))
            self._note_setback()
        if self._state is None:
            raise UnknownStream(self.stream)
        return self._state

    async def state_to_change(self) -> StreamState:
        """Give the state for a change; nothing is read anew while the store goes on refusing them."""
        if not self._is_current:
            self.refuse_again()
        return await self.state()

    async def readable(self) -> StreamState:
        """Give a state to read from; while the store is down, the one in memory."""
        # a store that hangs takes seconds to fail: one read now and then finds out, no other waits for it
        is_kept_waiting = self.lock.locked() or self.clock.monotonic() < self._look_again_at
        if self._state is not None and (self._is_current or is_kept_waiting):
            return self._state
        async with self.lock:
            try:
                return await self.latest()
            except StoreUnavailable:
                if self._state is None:
                    raise
                self._look_again_at = self.clock.monotonic() + RETRY_SECONDS
                return self._state

    async def latest(self) -> StreamState:
        """Give the state as of the log's head, for a read, whoever writes the stream."""
        if self.leases.holds(self.stream):
            return await self.state()
        try:
            self._place(await self._loader().load(may_rebuild=False))
        except StoreCorrupt:
            return await self.state()  # who writes the stream may rebuild it
        self._current, self.unsaved_since = False, None
        self._look_again_at = self.clock.monotonic() + COPY_SECONDS
        if self._state is None:
            raise UnknownStream(self.stream)
        return self._state

    def _loader(self, is_strict: bool | None = None) -> StateLoader:
        return StateLoader(self.stream, self._worker, self.settings.strict_replay if is_strict is None else is_strict)

    def _place(self, state: StreamState | None) -> None:
        self._state, self._current = state, True
        self._pending_creation = None
        self.figures = None if state is None else state.figures
        if state is not None:
            state.figures.stream = self.stream
            state.update_figures()
            state.figures.take_costs(state.detector.costs())
        self.unsaved_since = self.clock.monotonic() if state is not None and state.unsaved_events else None

    def _note_setback(self) -> None:
        """Count it when the store has lost what it had acknowledged to us, as an unpromised fail-over can."""
        position = START if self._state is None else self._state.position
        if position < self._acknowledged:
            self.metrics.setbacks.inc()
            what = f"the store is back at {position} from {self._acknowledged}"
            logger.warning("stream %s: %s", self.stream, what, extra={"stream": self.stream})
        self._acknowledged = position

    def begin(self, config: DetectorConfig) -> StreamState:
        """Start a stream in memory; the store learns of it with its first event."""
        state = new_state(Detector(config), START)
        self._place(state)
        self._pending_creation = Snapshot(state.position, state.to_bytes())
        return state

    async def create(self, state: StreamState, bounds: Sequence[Bound]) -> None:
        """Make a new stream known to the store. Raises TooManyStreams."""
        with self.ahead_of_log():  # one that is not vouched for may yet be found by the next try
            is_new = await self._create(Snapshot(state.position, state.to_bytes()), bounds)
        if not is_new:
            self.forget()
            raise StreamAppeared(self.stream)
        self._place(state)

    async def _create(self, snapshot: Snapshot, bounds: Sequence[Bound]) -> bool:
        bounds = (Bound("", self.settings.max_streams), *bounds)
        return await self.store.create(self.stream, snapshot, self.leases.token(self.stream), bounds)

    def forget(self) -> None:
        """Drop the state and leave the stream to others; the next use loads it."""
        self._place(None)
        self._current = False
        self.leases.release(self.stream)

    @contextmanager
    def ahead_of_log(self) -> Iterator[None]:
        """Mark the state as not to be trusted when the block that changes it does not come to its end."""
        try:
            yield
        except TooManyStreams:
            raise  # there is nothing yet that could be ahead
        except BaseException as error:
            if isinstance(error, StoreUnavailable):
                self._note_refusal(error)
            self._current, self._look_again_at = False, -math.inf
            self.leases.drop(self.stream)
            raise

    def _note_refusal(self, error: StoreUnavailable) -> None:
        """Let writes try again at once after the first refusal, then after a second, and then more and more seldom."""
        self._refused_writes, self._refusal = self._refused_writes + 1, error
        pause = min(2.0 ** (self._refused_writes - 2), RETRY_SECONDS) if self._refused_writes > 1 else 0.0
        self._write_again_at = self.clock.monotonic() + pause

    def refuse_again(self) -> None:
        """Raise the store's last refusal anew if it is not yet time for another try.

        Each try leaves the engine ahead of the log, and the next reader waits for a replay.
        """
        if self._refusal is not None and self.clock.monotonic() < self._write_again_at:
            raise StoreUnavailable(self._refusal.reason, self._refusal.cause)

    async def append(self, state: StreamState, entry: Entry, labels: Mapping[int, bytes] = NO_LABELS) -> None:
        """Log an event that the engine has taken; only then is it acknowledged."""
        await self.store.append(self.stream, state.position, entry, labels, self.leases.token(self.stream))
        self._refused_writes, self._refusal = 0, None
        state.position = self._acknowledged = entry.position
        state.unsaved_events += 1
        if self.unsaved_since is None:
            self.unsaved_since = self.clock.monotonic()
        self.subscriptions.notify(self.stream)

    async def create_if_pending(self, bounds: Sequence[Bound]) -> None:
        """Make a stream that was begun known to the store, before its first event. Raises TooManyStreams."""
        if self._pending_creation is not None:
            if not await self._create(self._pending_creation, bounds):
                raise StreamAppeared(self.stream)
            self._pending_creation = None

    def discard_if_pending(self) -> None:
        """Drop a stream that the store never heard of."""
        if self._pending_creation is not None:
            self.forget()

    async def save(self) -> None:
        """Store a snapshot and trim the log to the label horizon."""
        state = self._state
        if self._current and not self._is_current:
            self.unsaved_since = None  # another worker's to store now
        if state is None or not self._is_current or not state.unsaved_events:
            return
        try:
            await self.store_snapshot(state)
        except InvalidState as error:
            self._note_failure(state, error)

    async def trim(self) -> bool:
        """Trim the log of a stream that gets nothing any more; tell whether anything went."""
        state = await self.state()
        oldest_seq = state.horizon.oldest_seq
        newest = await self.store.entries(self.stream, Position.before(state.position.seq), 1)
        if newest:
            state.horizon = state.horizon.with_last(state.detector.next_seq, read_event(newest[0].body).at)
        try:
            await self.store_snapshot(state, step=SILENT_STEP)
        except InvalidState as error:
            self._note_failure(state, error)
        return state.horizon.oldest_seq > oldest_seq

    async def store_snapshot(self, state: StreamState, *, as_base: bool = False, step: int = STEP) -> None:
        """Store a snapshot of the state in memory; InvalidState, and the log stays, if it could not be read back."""
        horizon = state.horizon.advanced(
            state.detector.next_seq,
            self.clock.steady(),
            self.settings.horizon_samples,
            self.settings.label_horizon_seconds,
            step,
        )
        snapshot = Snapshot(state.position, state.to_bytes(horizon))
        try:
            token = self.leases.token(self.stream)
            await self.store.save_snapshot(self.stream, snapshot, horizon.oldest_seq, token, as_base=as_base)
        except (StaleWriter, Fenced):
            self.forget()
            raise
        self.metrics.snapshots.inc()
        state.horizon, state.unsaved_events, state.snapshot_failure = horizon, 0, None
        state.update_figures()
        state.figures.snapshot_bytes = len(snapshot.body)
        self.unsaved_since = None

    def _note_failure(self, state: StreamState, error: InvalidState) -> None:
        """Go on without a snapshot, which the log can do as well; try again when the next one would be due."""
        self.metrics.snapshot_failures.inc()
        self._save_again_at = self.clock.monotonic() + self.settings.snapshot_every_seconds
        if state.snapshot_failure is None:
            logger.warning("no snapshot of stream %s: %s", self.stream, error, extra={"stream": self.stream})
        state.snapshot_failure = error.reason

    async def put_back(self, state: StreamState) -> None:
        """Store a state that stands at the head of the log in place of what could not be read."""
        with self.ahead_of_log():
            await self.store_snapshot(state, as_base=True)
        self._place(state)
        self.mark_readable()

    async def put_anew(self, state: StreamState) -> None:
        """Put a state in the place of whatever is there of the stream; the log begins anew."""
        snapshot = Snapshot(state.position, state.to_bytes())
        with self.ahead_of_log():
            await self.store.restore(self.stream, snapshot, self.leases.token(self.stream))
        self._place(state)
        self._acknowledged = state.position
        self._worker.health.forget(self.stream)
        self.mark_readable()
        self.subscriptions.notify(self.stream, is_new_log=True)

    def mark_readable(self) -> None:
        """Note that the stream can be read, and whether its replay differs from its log."""
        is_mismatched = self._state is not None and bool(self._state.replay_mismatches)
        self._worker.health.mark_readable(self.stream, is_mismatched=is_mismatched)

    async def replace(self, state: StreamState) -> None:
        """Put another state in the place of the present one, in the store and in memory; the log begins anew."""
        present = await self.state()
        snapshot, token = Snapshot(state.position, state.to_bytes()), self.leases.token(self.stream)
        with self.ahead_of_log():
            await self.store.replace(self.stream, present.position, snapshot, token)
        self._place(state)
        self._acknowledged = state.position
        self._worker.health.forget(self.stream)
        self.subscriptions.notify(self.stream, is_new_log=True)

    async def delete_silent(self, seconds: float) -> None:
        """Delete the stream if it is silent for so long, by now, when nobody else can write it. Raises NotSilent."""
        await self.leases.acquire(self.stream)
        silence = (await self.store.silences([self.stream])).get(self.stream)
        if silence is None:
            raise UnknownStream(self.stream)
        if silence.seconds < seconds:
            raise NotSilent(silence.seconds, seconds)
        await self.delete("silent")
        about = {"stream": self.stream}
        logger.info("stream %s deleted: silent for %.0f s", self.stream, silence.seconds, extra=about)

    async def delete(self, reason: str = "request") -> bool:
        """Delete the stream."""
        await self.leases.acquire(self.stream)
        try:
            existed = await self.store.delete(self.stream, self.leases.token(self.stream))
            self.metrics.streams_deleted[reason].inc(existed)
            return existed
        finally:
            self.forget()
            self._worker.health.forget(self.stream)
            self._acknowledged = START
            self.subscriptions.notify(self.stream, is_new_log=True)
