"""Stores snapshots and closes streams in the background."""

from itertools import count

from app.streams.open.background import Background
from app.streams.open.clock import Clock
from app.streams.open.registry import Registry

PAUSE_SECONDS = 0.5
LOOK_EVERY = 60
"""Streams in trouble are looked at again after so many pauses."""


class Snapshotter(Background):
    """Looks again and again for streams whose snapshot is due, and for those to be closed."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock

    async def _run(self) -> None:
        for turn in count(1):
            await self._clock.sleep(PAUSE_SECONDS)
            await self._registry.save_due()
            await self._registry.close_unused()
            if turn % LOOK_EVERY == 0:
                await self._registry.look_again()
