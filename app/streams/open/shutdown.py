"""Ends the work on streams in order, in bounded time."""

import asyncio
import logging

from app.streams.open.registry import Registry
from app.streams.open.tasks import Tasks

logger = logging.getLogger(__name__)


async def shut_down(tasks: Tasks, registry: Registry, seconds: float) -> None:
    """Let running changes end, then store a snapshot of every changed stream; cancel what is left after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            await tasks.stop()
            await registry.summaries.write(list(registry.sessions.values()))
            # one by one, so that another worker can take a stream while the others are stored
            for stream in list(registry.sessions):
                await registry.hand_over(stream)
    except TimeoutError:
        text = "the shutdown time is over: %d streams have no new snapshot; their logs hold everything"
        logger.warning(text, len(registry.worker.unsaved))
        tasks.cancel()
