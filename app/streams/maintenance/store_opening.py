"""Opens the store. Servers that cannot be used yet are tried again; until then the service is unready."""

import asyncio
import logging
from contextlib import suppress

from app.storage import Store, StoreError, StoreUnavailable
from app.streams.open.clock import Clock

PAUSE_SECONDS = 1.0

logger = logging.getLogger(__name__)


class StoreOpening:
    """Opens the store at the start, in the background if it takes several tries."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._task: asyncio.Task[None] | None = None
        self.failure: str | None = None
        """Why the store could not be opened so far."""

    async def start(self) -> None:
        """Open the store, or go on trying in the background; raise errors that do not pass by themselves."""
        try:
            await self._open()
        except StoreUnavailable as error:
            if self._store.is_exclusive:  # a file: only an operator can free it
                raise
            self._note(error)
            self._task = asyncio.get_running_loop().create_task(self._insist())

    async def stop(self) -> None:
        """Stop trying."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _open(self) -> None:
        await self._store.open()
        self.failure = None
        with suppress(StoreError):  # /readyz reports it
            for warning in await self._store.check():
                logger.warning("%s", warning)

    async def _insist(self) -> None:
        while self.failure is not None:
            await self._clock.sleep(PAUSE_SECONDS)
            try:
                await self._open()
            except StoreError as error:
                self._note(error)
            else:
                logger.warning("the store can be used: ready")

    def _note(self, error: StoreError) -> None:
        """Keep the reason, and log it if it is new."""
        if self.failure != str(error):
            logger.warning("not ready: the store cannot be used yet: %s", error)
        self.failure = str(error)
