"""Looks through all streams now and then.

It trims the logs of silent ones, deletes those whose time is over, and completes summaries that a crash left behind.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from app.storage import START, LeaseHeld, Position, Silence, StoreError
from app.streams.errors import NotSilent, UnknownStream
from app.streams.log.events import UnreadableEvent, read_event
from app.streams.log.horizon import SILENT_STEP
from app.streams.maintenance.background import Background
from app.streams.maintenance.lifetimes import Lifetimes
from app.streams.open.registry import Registry
from app.streams.open.replacement import delete_silent
from app.streams.open.session import Session
from app.streams.open.summary import read_summary

FIRST_SECONDS = 60.0
PAGE_STREAMS = 200
PAUSE_SECONDS = 0.05
SUMMARY_SECONDS = 60.0
"""By then a worker that runs has stored the summary of what it wrote."""
CLOCKS_DIFFER_SECONDS = 0.5
NAME = "*sweep"
"""The lease of the one worker that sweeps: no stream can have this name."""

logger = logging.getLogger(__name__)


class Sweeper(Background):
    """Sweeps as long as no other worker does."""

    def __init__(self, registry: Registry) -> None:
        worker = registry.worker
        self._registry, self._owner = registry, worker.leases.owner
        self._store, self._settings, self._clock = worker.store, worker.settings, worker.clock
        self._lifetimes = Lifetimes.parse(worker.settings.stream_ttl)

    async def _run(self) -> None:
        await self._clock.sleep(min(FIRST_SECONDS, self._settings.sweep_seconds))
        while True:
            try:
                await self.sweep()
            except StoreError as error:
                logger.warning("could not look for silent streams: %s", error)
            await self._clock.sleep(self._settings.sweep_seconds)

    async def sweep(self) -> None:
        """Look through all streams, page by page, unless another worker does or did a moment ago."""
        after = ""
        with suppress(LeaseHeld):
            while streams := await self._store.streams(after, PAGE_STREAMS):
                await self._store.acquire(NAME, self._owner, self._settings.sweep_seconds)
                summaries, now = await self._store.find_summaries(streams), self._clock.now()
                for stream, silence in (await self._store.silences(streams)).items():
                    written_at = read_summary(stream, summaries.get(stream)).written_at
                    await self._tidy(stream, silence, is_behind=self._is_behind(silence, now, written_at))
                after = streams[-1]
                await asyncio.sleep(PAUSE_SECONDS)

    @staticmethod
    def _is_behind(silence: Silence, now: float, written_at: float | None) -> bool:
        """Tell whether a stream was written after its summary, by a worker that did not live to store another."""
        changed_at = now - silence.seconds
        is_settled = silence.seconds >= SUMMARY_SECONDS
        return is_settled and written_at is not None and changed_at > written_at + CLOCKS_DIFFER_SECONDS

    async def _tidy(self, stream: str, silence: Silence, *, is_behind: bool) -> None:
        """Do what is due to a stream; the failure of one must not end the sweep."""
        lifetime = self._lifetimes.of(stream)
        try:
            if lifetime is not None and silence.seconds >= lifetime:
                await self._delete(stream, lifetime)
            elif await self._is_old(stream, silence):
                await self._trim(stream)
            elif is_behind and self._registry.peek(stream) is None:
                await self._summarize(stream)
        except Exception as error:
            unexpected = not isinstance(error, StoreError)
            logger.warning("stream %s: %s", stream, error, exc_info=unexpected, extra={"stream": stream})

    async def _delete(self, stream: str, seconds: float) -> None:
        async with self._registry.changing(stream) as session:
            with suppress(NotSilent, UnknownStream):  # no longer silent, or deleted meanwhile
                await delete_silent(session, seconds)

    async def _is_old(self, stream: str, silence: Silence) -> bool:
        """Tell whether a stream that stores no snapshots any more has a log older than the label horizon."""
        if not silence.log_entries or silence.seconds < 2 * self._settings.snapshot_age_seconds:
            return False
        before = self._clock.steady() - self._settings.kept_seconds
        entries = await self._registry.worker.log(stream).kept.entries(START, 1)
        with suppress(UnreadableEvent):
            return bool(entries) and entries[0].n_samples > 0 and read_event(entries[0].body).at < before
        return False

    async def _trim(self, stream: str) -> None:
        """Trim the log of a stream."""
        async with self._opened(stream) as session:
            session.metrics.silent_trims.inc(await trim(session))

    async def _summarize(self, stream: str) -> None:
        """Store a new summary of a stream."""
        async with self._opened(stream) as session:
            await session.state()

    @asynccontextmanager
    async def _opened(self, stream: str) -> AsyncIterator[Session]:
        """Open a stream unless it is, and close it then, with a summary."""
        async with self._registry.changing(stream) as session:
            was_open = session.is_open
            try:
                yield session
            finally:
                if not was_open and session.users == 1:
                    await self._registry.summaries.write([session])
                    session.forget()


async def trim(session: Session) -> bool:
    """Trim the log of a silent stream; tell whether anything was removed. The session's lock is held."""
    state = await session.state()
    oldest_seq = state.horizon.oldest_seq
    newest = await session.log.entries(Position.before(state.position.seq), 1)
    if newest:
        state.horizon = state.horizon.with_last(state.detector.next_seq, read_event(newest[0].body).at)
    await session.store_if_valid(state, step=SILENT_STEP)
    return state.horizon.oldest_seq > oldest_seq
