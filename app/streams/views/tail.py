"""Follows a stream's log for a watcher; all that is kept for each watcher is a position in the log."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from app.storage import START, Entry, Position, Store, StoreUnavailable
from app.streams.errors import UnknownStream
from app.streams.log.events import BatchEvent, ConfigEvent, Label, UnreadableEvent, read_event, read_records
from app.streams.open.registry import Registry
from app.streams.open.subscriptions import Subscription
from app.streams.state.state import StreamState
from app.streams.views.columns import Columns, batch_columns
from app.streams.views.downsampling import Downsampler

MAX_ROWS = 2_000
PACE_SECONDS = 0.1
POLL_SECONDS = 1.0
CHECK_SECONDS = 10.0
HEARTBEAT_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class NewSamples:
    """Samples were observed; downsampled if there are very many."""

    position: Position
    rows: Columns
    is_downsampled: bool


@dataclass(frozen=True, slots=True)
class NewLabels:
    """Labels were applied or withdrawn, and ended incidents; threshold is the one after them, None if not known."""

    position: Position
    seq: list[int]
    label: list[Label]
    accepted: list[int]
    threshold: float | None


@dataclass(frozen=True, slots=True)
class NewConfig:
    """Fields of the config were changed to these values; threshold is the one after that, None if not known."""

    position: Position
    changed: dict[str, Any]
    threshold: float | None


@dataclass(frozen=True, slots=True)
class NewModel:
    """The number of nodes or levels of the tree has changed."""

    n_seen: int
    n_nodes: int
    n_levels: int

    def has_other_tree(self, other: "NewModel") -> bool:
        """Tell whether the tree differs."""
        return (self.n_nodes, self.n_levels) != (other.n_nodes, other.n_levels)


@dataclass(frozen=True, slots=True)
class NewLog:
    """The log does not go on from what the watcher knows: read the stream anew, then go on from the position."""

    position: Position


@dataclass(frozen=True, slots=True)
class Deleted:
    """The stream was deleted; nothing follows."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Nothing has happened for a while."""


Update = NewSamples | NewLabels | NewConfig | NewModel | NewLog | Deleted | Heartbeat


@dataclass(frozen=True, slots=True)
class ModelSeen:
    """What a watcher knows of the model; first_seq changes when the stream begins anew."""

    first_seq: int
    model: NewModel

    @classmethod
    def of(cls, state: StreamState) -> "ModelSeen":
        """Read it from a state."""
        detector = state.detector
        return cls(detector.first_seq, NewModel(detector.n_seen, detector.n_nodes, detector.n_levels))


class Tail:
    """One watcher's position in a stream's log."""

    def __init__(self, registry: Registry, store: Store, stream: str) -> None:
        self._registry, self._store, self._stream = registry, store, stream
        self._log = registry.worker.log(stream)
        self._position = START
        self._known: ModelSeen | None = None
        self._checked_at = self._reported_at = self._read_at = now()

    @property
    def position(self) -> Position:
        """Give the position in the log up to which everything was reported."""
        return self._position

    async def begin(self, after: Position | None) -> None:
        """Begin after a position of the log, or at its head. Raises UnknownStream."""
        found = await self._find_head()
        if found is None:
            raise UnknownStream(self._stream)
        head, known = found
        self._known = None if after is not None and after > head else known
        self._position = after or head

    async def updates(self, subscription: Subscription, is_over: Callable[[], bool]) -> AsyncIterator[Update]:
        """Report what happens, until `is_over` or until the stream is deleted."""
        if self._known is not None:
            yield self._known.model
        while not is_over():
            try:
                async for update in self._round(subscription):
                    self._reported_at = now()
                    yield update
                    if isinstance(update, Deleted):
                        return
            except StoreUnavailable:
                pass  # the next round tries again
            if now() - self._reported_at >= HEARTBEAT_SECONDS:
                self._reported_at = now()
                yield Heartbeat()
            await subscription.wait(POLL_SECONDS)
            # a busy stream is read a few times a second, however often it changes
            await asyncio.sleep(max(0.0, self._read_at + PACE_SECONDS - now()))

    async def _round(self, subscription: Subscription) -> AsyncIterator[Update]:
        self._read_at = now()
        if subscription.is_new_log or self._known is None:
            subscription.is_new_log = False
            yield await self._restart()
        async for entries in self._log.pages(self._position):
            if leaves_gap(self._position, entries[0]):
                yield await self._restart()
                break
            for update in self._updates_of(entries):
                yield update
        async for update in self._changes():
            yield update

    async def _restart(self) -> NewLog | Deleted:
        """Go on from the head of a log that was replaced, or that was trimmed beyond our position."""
        found = await self._find_head()
        if found is None:
            return Deleted()
        self._position, self._known = found
        return NewLog(self._position)

    def _updates_of(self, entries: Sequence[Entry]) -> list[Update]:
        """Report entries, consecutive batches as one, and move behind them."""
        updates: list[Update] = []
        for is_batch, group in groupby(entries, lambda entry: entry.first_seq is not None):
            together = list(group)
            updates += [self._samples(together)] if is_batch else map(self._told, together)
            self._position = together[-1].position
        return updates

    def _samples(self, entries: Sequence[Entry]) -> NewSamples:
        first, last = self._position.seq + 1, entries[-1].position.seq
        downsampler = Downsampler(first, last, MAX_ROWS)
        rows = batch_columns(entries)
        downsampler.add(rows[rows.seq >= first])
        kept = downsampler.rows()
        assert kept is not None
        return NewSamples(entries[-1].position, kept, downsampler.is_downsampled)

    def _told(self, entry: Entry) -> NewLabels | NewConfig:
        event = read_event(entry.body)
        if isinstance(event, BatchEvent):
            raise UnreadableEvent("a batch where none should be")
        state = self._registry.peek(self._stream)
        is_newest = state is not None and state.position == entry.position
        threshold = state.detector.threshold if state is not None and is_newest else None
        if isinstance(event, ConfigEvent):
            return NewConfig(entry.position, event.after, threshold)
        seqs = read_records(event.records).seq.tolist()
        return NewLabels(entry.position, seqs, event.labels, event.accepted, threshold)

    async def _changes(self) -> AsyncIterator[Update]:
        """Report what the log does not say; if another worker writes the stream, what its snapshot says."""
        present = await self._present()
        if present is self._known:
            return
        if present is None or self._known is None or present.first_seq != self._known.first_seq:
            yield await self._restart()
            return
        is_other = present.model.has_other_tree(self._known.model)
        self._known = present
        if is_other:
            yield present.model

    async def _present(self) -> ModelSeen | None:
        """Give what is known now, or what was known until the next check is due; None if the log is another one."""
        state = self._registry.peek(self._stream)
        if state is not None:
            return ModelSeen.of(state)
        if now() - self._checked_at < CHECK_SECONDS:
            return self._known
        self._checked_at = now()
        found = await self._find_head()
        return None if found is None or found[0] < self._position else found[1]

    async def _find_head(self) -> tuple[Position, ModelSeen] | None:
        """Find the head of the log, and what is known of the model without opening the stream."""
        loaded = await self._store.load(self._stream)
        if loaded is None:
            return None
        snapshot, head = loaded
        return head, ModelSeen.of(self._registry.glance(self._stream, snapshot))


def leaves_gap(position: Position, entry: Entry) -> bool:
    """Tell whether entries are missing between a position and the entry read after it."""
    if entry.first_seq is not None:
        return entry.first_seq > position.seq + 1
    return entry.position.seq > position.seq or entry.position.sub > position.sub + 1


def now() -> float:
    """Give the time of the event loop."""
    return asyncio.get_running_loop().time()
