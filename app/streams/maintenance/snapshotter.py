"""Stores snapshots and closes streams in the background."""

import asyncio
from itertools import count

from app.streams.maintenance.background import Background
from app.streams.maintenance.checker import Checker
from app.streams.open.registry import Registry

PAUSE_SECONDS = 0.5
ROUNDS_PER_RECHECK = 60


class Snapshotter(Background):
    """Stores the snapshots that are due and closes unused streams, round after round."""

    def __init__(self, registry: Registry, checker: Checker) -> None:
        self._registry, self._checker = registry, checker
        self._worker, self._clock = registry.worker, registry.worker.clock

    async def _run(self) -> None:
        for round_number in count(1):
            await self._clock.sleep(PAUSE_SECONDS)
            await self.save_due()
            await self._registry.close_unused()
            if round_number % ROUNDS_PER_RECHECK == 0:
                await self._checker.recheck()

    async def save_due(self) -> None:
        """Store the snapshots that are due, one after another."""
        now, unsaved, sessions = self._clock.monotonic(), self._worker.unsaved, self._registry.sessions
        streams = unsaved.candidates(now - self._worker.settings.snapshot_age_seconds)
        due = [sessions[stream] for stream in streams if stream in sessions and sessions[stream].snapshot_is_due]
        for session in due:
            unsaved.note_due(session.stream, now)
        for session in due:
            if session.snapshot_is_due:
                await self._registry.save(session)
                await asyncio.sleep(0)
