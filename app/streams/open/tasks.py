"""Changes under way, which run to their end even if the client that asked for them has gone."""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

from app.streams.errors import Stopping

T = TypeVar("T")


class Tasks:
    """The running changes of all streams, until the service stops."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()
        self._is_stopping = False

    def __len__(self) -> int:
        return len(self._running)

    async def shielded(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work to its end, also if the caller is cancelled. Raises Stopping once the service stops."""
        if self._is_stopping:
            work.close()
            raise Stopping
        loop = asyncio.get_running_loop()
        task, ended = loop.create_task(work), loop.create_future()
        self._running.add(task)
        task.add_done_callback(partial(self._end, ended))
        # asyncio.shield would do, at twice the cost
        await ended
        return task.result()

    def _end(self, ended: "asyncio.Future[None]", task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        # fetched, so that asyncio does not report the failure of a task whose client has gone
        if not task.cancelled():
            task.exception()
        if not ended.done():
            ended.set_result(None)

    async def finish(self) -> None:
        """Wait until nothing runs any more."""
        while self._running:
            await asyncio.wait(set(self._running))

    async def stop(self) -> None:
        """Take no new work, and wait for what runs."""
        self._is_stopping = True
        await self.finish()

    def cancel(self) -> None:
        """Cancel what still runs."""
        for task in self._running:
            task.cancel()
