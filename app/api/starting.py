"""Opens the store: servers that cannot be used yet are tried again, and the service is unready until they can."""

import asyncio
import logging
from contextlib import suppress

from app.api.service import Service
from app.storage import StoreError, StoreUnavailable
from app.streams.open.clock import Clock

PAUSE_SECONDS = 1.0

logger = logging.getLogger(__name__)


class Starting:
    """The time until the store is open."""

    def __init__(self, service: Service, clock: Clock) -> None:
        self._service, self._clock = service, clock
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the store, or go on trying in the background; raise what does not pass by itself."""
        try:
            await self._open()
        except StoreUnavailable as error:
            if self._service.store.is_exclusive:  # a file: what keeps it closed stays until somebody mends it
                raise
            self._note(error)
            self._task = asyncio.get_running_loop().create_task(self._insist())

    async def stop(self) -> None:
        """Try no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _open(self) -> None:
        await self._service.store.open()
        self._service.start_failure = None
        with suppress(StoreError):  # /readyz says it
            for warning in await self._service.store.check():
                logger.warning("%s", warning)

    async def _insist(self) -> None:
        while self._service.start_failure is not None:
            await self._clock.sleep(PAUSE_SECONDS)
            try:
                await self._open()
            except StoreError as error:
                self._note(error)
            else:
                logger.warning("the store can be used: ready")

    def _note(self, error: StoreError) -> None:
        """Keep the reason, and say it if it is a new one."""
        if self._service.start_failure != str(error):
            logger.warning("not ready: the store cannot be used yet: %s", error)
        self._service.start_failure = str(error)
