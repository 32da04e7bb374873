"""Stores snapshots and closes streams in the background."""

from itertools import count

from app.streams.maintenance.background import Background
from app.streams.maintenance.checker import Checker
from app.streams.open.clock import Clock
from app.streams.open.registry import Registry

PAUSE_SECONDS = 0.5
ROUNDS_PER_RECHECK = 60


class Snapshotter(Background):
    """Stores the snapshots that are due and closes unused streams, round after round."""

    def __init__(self, registry: Registry, checker: Checker, clock: Clock) -> None:
        self._registry, self._checker, self._clock = registry, checker, clock

    async def _run(self) -> None:
        for round_number in count(1):
            await self._clock.sleep(PAUSE_SECONDS)
            await self._registry.save_due()
            await self._registry.close_unused()
            if round_number % ROUNDS_PER_RECHECK == 0:
                await self._checker.recheck()
