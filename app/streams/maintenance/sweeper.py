"""Looks through all streams now and then: trims the logs of silent ones, and deletes those whose time is over."""

import asyncio
import logging
from contextlib import suppress

from app.settings import Settings
from app.storage import START, LeaseHeld, Silence, Store, StoreError
from app.streams.log.events import UnreadableEvent, read_event
from app.streams.maintenance.background import Background
from app.streams.maintenance.lifetimes import Lifetimes
from app.streams.open.clock import Clock
from app.streams.open.registry import Registry

FIRST_SECONDS = 60.0
PAGE_STREAMS = 200
PAUSE_SECONDS = 0.05
NAME = "*sweep"
"""What is leased by the one worker that sweeps: no stream can be called so."""

logger = logging.getLogger(__name__)


class Sweeper(Background):
    """Sweeps as long as no other worker does."""

    def __init__(self, registry: Registry, store: Store, settings: Settings, clock: Clock) -> None:
        self._registry, self._store, self._settings, self._clock = registry, store, settings, clock
        self._lifetimes = Lifetimes.parse(settings.stream_ttl)

    async def _run(self) -> None:
        await self._clock.sleep(min(FIRST_SECONDS, self._settings.sweep_seconds))
        while True:
            try:
                await self.sweep()
            except StoreError as error:
                logger.warning("could not look for silent streams: %s", error)
            await self._clock.sleep(self._settings.sweep_seconds)

    async def sweep(self) -> None:
        """Look through all streams, page by page, unless another worker has begun to within the time of a sweep."""
        after = ""
        with suppress(LeaseHeld):
            while streams := await self._store.streams(after, PAGE_STREAMS):
                await self._store.acquire(NAME, self._registry.leases.owner, self._settings.sweep_seconds)
                for stream, silence in (await self._store.silences(streams)).items():
                    await self._tidy(stream, silence)
                after = streams[-1]
                await asyncio.sleep(PAUSE_SECONDS)

    async def _tidy(self, stream: str, silence: Silence) -> None:
        """Do what is due to a stream; what one of them does not allow must not end the sweep."""
        lifetime = self._lifetimes.of(stream)
        try:
            if lifetime is not None and silence.seconds >= lifetime:
                await self._registry.expire(stream, lifetime)
            elif await self._is_old(stream, silence):
                await self._registry.trim(stream)
        except Exception as error:
            unexpected = not isinstance(error, StoreError)
            logger.warning("stream %s: %s", stream, error, exc_info=unexpected, extra={"stream": stream})

    async def _is_old(self, stream: str, silence: Silence) -> bool:
        """Tell whether the log of a stream that stores no snapshots any more holds what is older than it may be."""
        if not silence.log_entries or silence.seconds < 2 * self._settings.snapshot_every_seconds:
            return False
        before = self._clock.steady() - self._settings.label_horizon_seconds
        entries = await self._store.entries(stream, START, 1)
        with suppress(UnreadableEvent):
            return bool(entries) and read_event(entries[0].body).at < before
        return False
