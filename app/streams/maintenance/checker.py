"""Checks streams, one at a time, and keeps track of the damaged ones."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice

from app.storage import START, StoreError
from app.streams.maintenance.diagnosis import Diagnosis, diagnose
from app.streams.open.fingerprint import fingerprint
from app.streams.open.registry import Registry
from app.streams.state.state import StreamState
from core import InvalidSnapshot

MAX_RECHECKED = 20
"""Streams that are checked again in one round."""


class Checker:
    """Finds damage when asked, and notices when another worker has repaired it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store, self._health = registry.worker.store, registry.worker.health
        self._turn = asyncio.Lock()

    async def check(self, stream: str) -> Diagnosis:
        """Read and replay all that is kept of a stream; one at a time, since it takes CPU."""
        async with self._turn:
            found = await diagnose(self._registry.worker.log(stream))
        if found.is_damaged:
            seen = await fingerprint(self._store, stream)
            self._health.mark_damaged(stream, found.findings[0].text, seen)
        else:
            self._health.damaged.pop(stream, None)
        return found

    async def recheck(self) -> None:
        """Forget the damage and the mismatches that another worker has repaired."""
        for stream in self._closed(self._health.damaged):
            with suppress(StoreError):
                if await fingerprint(self._store, stream) != self._health.damaged[stream].fingerprint:
                    self._health.forget(stream)
        for stream in self._closed(self._health.mismatched):
            with suppress(StoreError, InvalidSnapshot):
                if not await self._is_mismatched(stream):
                    self._health.forget(stream)

    async def _is_mismatched(self, stream: str) -> bool:
        loaded = await self._store.load(stream)
        return loaded is not None and bool(StreamState.from_bytes(loaded[0].body, START).replay_mismatches)

    def _closed(self, streams: Iterable[str]) -> list[str]:
        """Give some of the streams that are not open here."""
        closed = (stream for stream in list(streams) if stream not in self._registry.sessions)
        return list(islice(closed, MAX_RECHECKED))
