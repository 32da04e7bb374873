"""Work beside the requests, from the start of the service to its end."""

import asyncio
from abc import ABC, abstractmethod


class Background(ABC):
    """A task that is started once and cancelled at the end."""

    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    @abstractmethod
    async def _run(self) -> None:
        """Work until cancelled."""
