"""Stores the summaries of streams in the background, so that a list of thousands reads no stream."""

import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final

from app.streams.maintenance.background import Background
from app.streams.open.registry import Registry

PAUSE_SECONDS: Final = 5.0
SHARE: Final = 0.02
"""The work takes no more of the time: with many streams the rounds are longer."""

logger = logging.getLogger(__name__)


class Summarizer(Background):
    """Stores the summaries that are due, round after round, and then does `fill`, for streams that have none."""

    def __init__(self, registry: Registry, fill: Callable[[], Awaitable[None]]) -> None:
        self._registry, self._clock, self._fill = registry, registry.worker.clock, fill

    async def _run(self) -> None:
        while True:
            began = perf_counter()
            await self._registry.summaries.write(list(self._registry.sessions.values()))
            await self._clock.sleep(max(PAUSE_SECONDS, (perf_counter() - began) / SHARE))
            await self._fill_some()

    async def _fill_some(self) -> None:
        try:
            await self._fill()
        except Exception as error:
            # one stream's fault must not end the summaries of all others
            logger.warning("streams without a summary not described: %s", error, exc_info=True)
