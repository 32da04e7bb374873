"""Reads the file of keys again when it has changed, so keys can change without a restart."""

import asyncio
import logging
from typing import Protocol

from app.metrics import Metrics
from app.security.errors import InvalidKeys
from app.security.file import KeyFile
from app.security.ring import KeyRing

LOOK_SECONDS = 2.0
KEPT = "the file of ITAN_API_KEYS_FILE cannot be read: its earlier keys stay valid (see the log)"

logger = logging.getLogger(__name__)


class Clock(Protocol):
    """A clock to wait with."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class KeyWatch:
    """Keeps a ring in step with its file. A broken file leaves the keys as they are, and is logged."""

    def __init__(self, ring: KeyRing, file: KeyFile, clock: Clock, metrics: Metrics) -> None:
        self._ring, self._file, self._clock, self._metrics = ring, file, clock, metrics
        self._task: asyncio.Task[None] | None = None
        self.warnings: list[str] = []
        ring.take(file.read())
        self._tell(is_broken=False)

    def start(self) -> None:
        """Start to watch."""
        self._task = asyncio.get_running_loop().create_task(self._keep())

    async def stop(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def look(self) -> None:
        """Read the file if it has changed, in a thread because it may hold thousands of keys."""
        if not await asyncio.to_thread(self._file.has_changed):
            return
        try:
            await asyncio.to_thread(lambda: self._ring.take(self._file.read()))
        except InvalidKeys as error:
            logger.error("the earlier keys stay valid: %s", error)
            self._tell(is_broken=True)
        else:
            logger.info("read %d keys again", len(self._ring.grants))
            self._tell(is_broken=False)

    def _tell(self, *, is_broken: bool) -> None:
        self.warnings = [KEPT] if is_broken else []
        self._metrics.keys_file_broken.set(is_broken)
        self._metrics.keys.set(len(self._ring.grants))
        for grant in self._ring.grants:
            for limit in grant.limits.given():
                self._metrics.refusals.know(str(grant.name), limit)

    async def _keep(self) -> None:
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            await self.look()
