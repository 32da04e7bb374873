"""A process that moves a log into blocks and dies by SIGKILL after a step of its choice."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

from app.storage import open_store
from app.streams.log import compaction

READS = ("load", "packed_to", "entries", "find_ids")

Call = Callable[..., Awaitable[Any]]


def move(url: str, steps: int) -> None:
    """Make blocks of all that stream "s" has; die after so many steps that changed the store."""
    compaction.LEAST_SAMPLES, compaction.MOST_SAMPLES = 6, 8
    asyncio.run(_move(url, steps))


async def _move(url: str, steps: int) -> None:
    store: Any = open_store(url)
    await store.open()
    (_, head), left = await store.load("s"), [steps]
    if store.is_exclusive:
        store.writer.run = _mortal(store.writer.run, left)
    else:
        store._calls.read, store._calls.change = _mortal(store._calls.read, left), _mortal(store._calls.change, left)
    while await compaction.compact(store, "s", head, 1):
        pass
    await store.close()


def _mortal(call: Call, left: list[int]) -> Call:
    async def run(*given: Any) -> Any:
        answer = await call(*given)
        left[0] -= given[0] not in READS
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    return run
