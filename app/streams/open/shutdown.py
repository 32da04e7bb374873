"""Ends the work on streams in order, in bounded time."""

import asyncio
import logging

from app.streams.open.registry import Registry
from app.streams.open.session import Session
from app.streams.open.tasks import Tasks

logger = logging.getLogger(__name__)


async def shut_down(tasks: Tasks, registry: Registry, seconds: float) -> None:
    """Let running changes end, then store a snapshot of every changed stream; cancel what is left after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            await tasks.stop()
            await registry.summaries.write(list(registry.sessions.values()))
            # one by one, so that another worker can take a stream while the others are stored
            for session in sorted(registry.sessions.values(), key=turn_of):
                await registry.hand_over(session.stream)
    except TimeoutError:
        text = "the shutdown time is over: %d streams have no new snapshot; their logs hold everything"
        logger.warning(text, len(registry.worker.unsaved))
        tasks.cancel()


def turn_of(session: Session) -> tuple[bool, float]:
    """Give the order of streams: first those that need no snapshot, then those that would take longest to replay."""
    state = session.current_state
    seconds = 0.0 if state is None else state.replay_seconds
    return seconds > 0, -seconds
