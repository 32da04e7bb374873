"""The streams in memory, one session each."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

from app.metrics import Metrics, StreamFigures
from app.settings import Settings
from app.storage import Snapshot, Store, StoreError
from app.streams.errors import NotSilent, Stopping, UnknownStream
from app.streams.open.clock import Clock
from app.streams.open.health import StreamHealth
from app.streams.open.leases import Leases, unique_name
from app.streams.open.session import Session
from app.streams.open.state import StreamState
from app.streams.open.subscriptions import Subscriptions
from app.streams.open.worker import Worker

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Registry:
    """Hands out sessions, and closes the least recently used when all together take more memory than they may."""

    def __init__(self, store: Store, settings: Settings, clock: Clock, metrics: Metrics) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        owner = settings.worker or unique_name()
        self.leases = Leases(store, owner, settings.lease_seconds, settings.handover_seconds, clock, metrics)
        self.leases.hand_over = self.hand_over
        self.subscriptions = Subscriptions(settings.max_watchers)
        self.health = StreamHealth()
        self._worker = Worker(store, settings, clock, metrics, self.leases, self.health, self.subscriptions)
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._running: set[asyncio.Task[Any]] = set()
        self._stopping = False
        self._held_bytes = 0
        self._started_at = clock.monotonic()
        self._making_room = asyncio.Lock()
        metrics.watch(
            self,
            memory_budget_bytes=settings.memory_budget_bytes,
            snapshot_due_seconds=settings.snapshot_every_seconds,
        )

    def count(self) -> int:
        """Count the streams in memory."""
        return len(self._figures())

    def held_bytes(self) -> int:
        """Give the memory of the open streams."""
        return self._held_bytes

    def oldest_unsaved_seconds(self) -> float:
        """Give the age of the oldest change that no snapshot holds."""
        times = [session.unsaved_since for session in self._sessions.values() if session.unsaved_since is not None]
        return self._clock.monotonic() - min(times) if times else 0.0

    def watchers(self) -> int:
        """Count the event streams that are being sent."""
        return len(self.subscriptions)

    def leases_held(self) -> int:
        """Count the streams that are leased."""
        return self.leases.count()

    def store_retries(self) -> int:
        """Count how often the store was asked again after a failure."""
        return self._store.retries

    def written(self) -> list[StreamFigures]:
        """Give the figures of the streams that are written here."""
        holds = self.leases.holding()
        return [figures for figures in self._figures() if holds(figures.stream)]

    def _figures(self) -> list[StreamFigures]:
        return [figures for session in self._sessions.values() if (figures := session.figures) is not None]

    def silent_seconds(self, stream: str) -> float:
        """Give the time since a stream's last sample was learned here; since the start, if none was."""
        return self._clock.monotonic() - self._metrics.learned_at.get(stream, self._started_at)

    async def shielded(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work to its end even when the client that asked for it has gone."""
        if self._stopping:
            work.close()
            raise Stopping
        loop = asyncio.get_running_loop()
        task, ended = loop.create_task(work), loop.create_future()
        self._running.add(task)
        task.add_done_callback(partial(self._done, ended))
        # asyncio.shield would do, at twice the cost
        await ended
        return task.result()

    def _done(self, ended: "asyncio.Future[None]", task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        # fetched, so that a failure whose client has gone is not reported as never looked at
        if not task.cancelled():
            task.exception()
        if not ended.done():
            ended.set_result(None)

    def reading(self, stream: str) -> "Reading":
        """Give a stream's session for a read."""
        return Reading(self, stream)

    def changing(self, stream: str) -> "Changing":
        """Give a stream's session for a change; changes of one stream take turns in the order they came."""
        return Changing(self, stream)

    async def enter(self, stream: str) -> Session:
        """Find or begin a session, which stays open until its user has left."""
        if stream not in self._sessions:
            # only who opens a stream waits for the room
            await self._make_room()
        session = self._sessions.get(stream) or self._begin(stream)
        self._sessions.move_to_end(stream)
        session.users += 1
        return session

    def leave(self, session: Session) -> None:
        """Let a session go that was entered."""
        session.used_at = self._clock.monotonic()
        self._leave(session)

    def is_open(self, stream: str) -> bool:
        """Tell whether a stream has a session here."""
        return stream in self._sessions

    def peek(self, stream: str) -> StreamState | None:
        """Give the state of a stream that this worker writes, if it is in memory; nothing is opened for it."""
        session = self._sessions.get(stream)
        return None if session is None else session.present_state

    def glance(self, stream: str, snapshot: Snapshot) -> StreamState:
        """Give the state of a stream, or else that of its snapshot; nothing is opened for it."""
        return self.peek(stream) or StreamState.from_bytes(snapshot.body, snapshot.position)

    def _begin(self, stream: str) -> Session:
        session = self._sessions[stream] = Session(stream, self._worker)
        return session

    def _leave(self, session: Session) -> None:
        """Note what a session takes now that one user less is there, and forget it if that is nothing."""
        session.users -= 1
        before, session.weight = session.weight, session.memory_bytes
        self._held_bytes += session.weight - before
        unused = not session.users and not session.is_open
        if unused and self._sessions.get(session.stream) is session:
            del self._sessions[session.stream]
            self.leases.release(session.stream)

    async def _make_room(self) -> None:
        """Close the least recently used streams until the others take no more memory than they may."""
        async with self._making_room:
            while self._held_bytes > self._settings.memory_budget_bytes:
                session = next((session for session in self._sessions.values() if not session.users), None)
                if session is None or not await self.save(session, closing="room"):
                    return
                if session.is_open and not session.users:
                    return  # nothing was freed: the next one would be the same again, for ever

    async def close_unused(self) -> None:
        """Close the streams that nobody has asked for in a while, and those that growth leaves no room for."""
        before = self._clock.monotonic() - self._settings.idle_seconds
        for session in list(takewhile(lambda session: session.used_at <= before, self._sessions.values())):
            if not session.users:
                await self.save(session, closing="idle")
        await self._make_room()

    async def save(self, session: Session, *, closing: str = "") -> bool:
        """Store a snapshot of a stream if it has changed; False if that failed.

        With a reason for closing it, it is closed too if nobody else uses it.
        """
        session.users += 1
        try:
            async with session.lock:
                saved = await self._save(session)
                if saved and closing and session.users == 1:
                    session.forget()
                    self._metrics.streams_closed[closing].inc()
            return saved
        finally:
            self._leave(session)

    async def _save(self, session: Session) -> bool:
        try:
            await session.save()
            return True
        except Exception as error:
            # one stream's fault must not end the snapshots of all others
            self._metrics.snapshot_failures.inc()
            # the others have their turn before it is tried again
            self._sessions.move_to_end(session.stream)
            unexpected = not isinstance(error, StoreError)
            about = {"stream": session.stream}
            logger.warning("no snapshot of stream %s: %s", session.stream, error, exc_info=unexpected, extra=about)
            return False

    async def hand_over(self, stream: str) -> None:
        """Leave a stream to others after the changes under way, with a snapshot that they can go on from."""
        session = self._sessions.get(stream)
        if session is None:
            self.leases.release(stream)
            return
        session.users += 1
        try:
            async with session.lock:
                await self._save(session)
                session.forget()
        finally:
            self._leave(session)

    async def trim(self, stream: str) -> None:
        """Trim the log of a silent stream, which is opened for that if it must be."""
        async with self.changing(stream) as session:
            was_open = session.is_open
            try:
                self._metrics.silent_trims.inc(await session.trim())
            finally:
                if not was_open and session.users == 1:
                    session.forget()

    async def expire(self, stream: str, seconds: float) -> None:
        """Delete a stream that is silent for so long, unless that has changed meanwhile."""
        async with self.changing(stream) as session:
            with suppress(NotSilent, UnknownStream):
                await session.delete_silent(seconds)

    async def save_due(self) -> None:
        """Store the snapshots that are due, one after another."""
        for session in [session for session in self._sessions.values() if session.snapshot_is_due]:
            await self.save(session)
            await asyncio.sleep(0)

    def damaged_streams(self) -> int:
        """Count the streams that are known to be damaged."""
        return len(self.health.damaged)

    def mismatched_streams(self) -> int:
        """Count the streams whose replay differed from their logs, and that nobody has accepted since."""
        return len(self.health.mismatched)

    async def stop(self) -> None:
        """Let running work end, then snapshot every changed stream, all within the shutdown time."""
        self._stopping = True
        try:
            async with asyncio.timeout(self._settings.shutdown_seconds):
                while self._running:
                    await asyncio.wait(set(self._running))
                for stream in list(self._sessions):
                    await self.hand_over(stream)  # at once: others may be asked for it while this one stores the rest
        except TimeoutError:
            left = sum(session.unsaved_since is not None for session in self._sessions.values())
            logger.warning(
                "the shutdown time is over: %d streams have no new snapshot; their logs hold everything", left
            )
            for task in self._running:
                task.cancel()


class Reading:
    """A stream's session for the time of a read."""

    __slots__ = ("_registry", "_session", "_stream")

    def __init__(self, registry: Registry, stream: str) -> None:
        self._registry, self._stream = registry, stream

    async def __aenter__(self) -> Session:
        self._session = await self._registry.enter(self._stream)
        return self._session

    async def __aexit__(self, *_: object) -> None:
        self._registry.leave(self._session)


class Changing(Reading):
    """A stream's session, with its lock, for the time of a change."""

    __slots__ = ()

    async def __aenter__(self) -> Session:
        session = await super().__aenter__()
        try:
            await session.lock.acquire()
        except BaseException:
            self._registry.leave(session)
            raise
        return session

    async def __aexit__(self, *_: object) -> None:
        self._session.lock.release()
        self._registry.leave(self._session)
