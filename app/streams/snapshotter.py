"""Stores snapshots and closes streams in the background."""

import asyncio
from itertools import count

from app.streams.clock import Clock
from app.streams.registry import Registry

PAUSE_SECONDS = 0.5
LOOK_EVERY = 60
"""Streams in trouble are looked at again after so many pauses."""


class Snapshotter:
    """Looks again and again for streams whose snapshot is due, and for those to be closed."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End, after the snapshot under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        for turn in count(1):
            await self._clock.sleep(PAUSE_SECONDS)
            await self._registry.save_due()
            await self._registry.close_unused()
            if turn % LOOK_EVERY == 0:
                await self._registry.look_again()
