"""The streams in memory, one session each."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import takewhile

from app.storage import Snapshot, StoreError
from app.streams.open.session import Session
from app.streams.open.summary import Summary
from app.streams.open.summary_writer import SummaryWriter
from app.streams.open.worker import Worker
from app.streams.state.state import StreamState

logger = logging.getLogger(__name__)


class Registry:
    """Hands out sessions, and closes the least recently used ones when all together take more memory than allowed."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        worker.leases.hand_over = self.hand_over
        self.sessions: OrderedDict[str, Session] = OrderedDict()
        """By name; the most recently used one comes last."""
        self.summaries = SummaryWriter(worker)
        self.held_bytes = 0
        self._making_room = asyncio.Lock()

    @asynccontextmanager
    async def reading(self, stream: str) -> AsyncIterator[Session]:
        """Give a stream's session for a read."""
        if stream not in self.sessions:
            # only a request that opens a stream waits for room
            await self._make_room()
        session = self.sessions.get(stream) or self._begin(stream)
        self.sessions.move_to_end(stream)
        with self._in_use(session):
            try:
                yield session
            finally:
                session.used_at = self.worker.clock.monotonic()

    @asynccontextmanager
    async def changing(self, stream: str) -> AsyncIterator[Session]:
        """Give a stream's session for a change; changes of one stream take turns in the order they came."""
        async with self.reading(stream) as session, session.lock:
            yield session

    @asynccontextmanager
    async def changing_idle(self, streams: Iterable[str]) -> AsyncIterator[list[Session]]:
        """Give the sessions, for a change, of those streams that are in memory and that nobody uses.

        Somebody may come in between all the same: so all take their locks in the same order.
        """
        found = [session for stream in sorted(streams) if (session := self.sessions.get(stream)) and session.is_idle]
        for session in found:
            self.sessions.move_to_end(session.stream)
            session.users += 1
        locked = list[Session]()
        try:
            for session in found:
                await session.lock.acquire()
                locked.append(session)
            yield found
        finally:
            for session in locked:
                session.lock.release()
            for session in found:
                session.used_at = self.worker.clock.monotonic()
                self._end_use(session)

    def _begin(self, stream: str) -> Session:
        session = self.sessions[stream] = Session(stream, self.worker)
        return session

    @contextmanager
    def _in_use(self, session: Session) -> Iterator[None]:
        """Keep a session open; update its memory after use, and drop it if it holds nothing."""
        session.users += 1
        try:
            yield
        finally:
            self._end_use(session)

    def _end_use(self, session: Session) -> None:
        session.users -= 1
        before, session.counted_bytes = session.counted_bytes, session.memory_bytes
        self.held_bytes += session.counted_bytes - before
        is_unused = not session.users and not session.is_open
        if is_unused and self.sessions.get(session.stream) is session:
            del self.sessions[session.stream]
            self.worker.leases.release(session.stream)

    def peek(self, stream: str) -> StreamState | None:
        """Give the state of a stream that this worker writes, if it is in memory; nothing is loaded for it."""
        session = self.sessions.get(stream)
        return None if session is None else session.current_state

    def summary(self, stream: str) -> Summary | None:
        """Describe a stream that this worker writes, if it is in memory."""
        session = self.sessions.get(stream)
        return None if session is None else session.summary()

    def glance(self, stream: str, snapshot: Snapshot) -> StreamState:
        """Give the state of a stream, or else that of its snapshot; no log is replayed for it."""
        return self.peek(stream) or StreamState.from_bytes(snapshot.body, snapshot.position)

    async def _make_room(self) -> None:
        """Close the least recently used streams until the others take no more memory than allowed."""
        async with self._making_room:
            while self.held_bytes > self.worker.settings.memory_budget_bytes:
                session = next((session for session in self.sessions.values() if not session.users), None)
                if session is None or not await self.save(session, closing="room"):
                    return
                if session.is_open and not session.users:
                    return  # nothing was freed: the next one would be the same again, for ever

    async def close_unused(self) -> None:
        """Close the streams that nobody has asked for in a while, and those that growth leaves no room for."""
        before = self.worker.clock.monotonic() - self.worker.settings.idle_seconds
        for session in list(takewhile(lambda session: session.used_at <= before, self.sessions.values())):
            if not session.users:
                await self.save(session, closing="idle")
        await self._make_room()

    async def save(self, session: Session, *, closing: str = "") -> bool:
        """Store a snapshot of a stream if it has changed; False if that failed.

        With a reason for closing it, it is closed too if nobody else uses it.
        """
        with self._in_use(session):
            async with session.lock:
                saved = await self._save(session)
                if saved and closing:
                    await self.summaries.write([session])
                if saved and closing and session.users == 1:
                    session.forget()
                    self.worker.metrics.streams_closed[closing].inc()
            return saved

    async def _save(self, session: Session) -> bool:
        try:
            await session.save()
            return True
        except Exception as error:
            # one stream's fault must not end the snapshots of all others
            self.worker.metrics.snapshot_failures.inc()
            # the others have their turn before it is tried again
            self.sessions.move_to_end(session.stream)
            unexpected = not isinstance(error, StoreError)
            about = {"stream": session.stream}
            logger.warning("no snapshot of stream %s: %s", session.stream, error, exc_info=unexpected, extra=about)
            return False

    async def hand_over(self, stream: str) -> None:
        """Release a stream after the changes under way, with a snapshot for the next worker."""
        session = self.sessions.get(stream)
        if session is None:
            self.worker.leases.release(stream)
            return
        with self._in_use(session):
            async with session.lock:
                await self._save(session)
                await self.summaries.write([session])
                session.forget()
