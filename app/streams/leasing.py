"""The leases of this worker: of each stream that it writes, it is the only writer."""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from os import getpid
from secrets import token_hex
from socket import gethostname

from app.metrics import Metrics
from app.storage.base import LeaseHeld, Store, StoreError
from app.streams.clock import Clock

RENEWALS_PER_LEASE = 3
RELEASE_SECONDS = 5.0

logger = logging.getLogger(__name__)


class Leases:
    """Acquires, renews and releases leases, and knows the token of each.

    What happens to a stream rests on the token alone: a lease that is lost unnoticed makes the next write fail.
    """

    def __init__(self, store: Store, owner: str, seconds: float, clock: Clock, metrics: Metrics) -> None:
        self._store, self._owner, self._seconds, self._clock = store, owner, seconds, clock
        self._changes = metrics.lease_changes
        self._tokens: dict[str, int] = {}
        self._used_at: dict[str, float] = {}
        self._renewing: asyncio.Task[None] | None = None
        self._releasing: set[asyncio.Task[None]] = set()

    def holds(self, stream: str) -> bool:
        """Tell whether this worker writes the stream, as far as it knows."""
        return self._store.is_exclusive or stream in self._tokens

    def holding(self) -> Callable[[str], bool]:
        """Give `holds` for asking of thousands of streams at once."""
        return self.holds if self._store.is_exclusive else self._tokens.__contains__

    def count(self) -> int:
        """Count the leases that this worker has."""
        return len(self._tokens)

    def token(self, stream: str) -> int:
        """Give the token that comes with a write to a stream."""
        return self._tokens.get(stream, 0)

    def use(self, stream: str) -> None:
        """Note that a stream is about to be changed, so that it is not left to others for a while."""
        self._used_at[stream] = self._clock.monotonic()

    async def acquire(self, stream: str) -> None:
        """Make this worker the writer of a stream. Raises LeaseHeld."""
        if self.holds(stream):
            return
        try:
            self._tokens[stream] = await self._store.acquire(stream, self._owner, self._seconds)
        except LeaseHeld:
            self._changes["refused"].inc()
            raise
        self._changes["acquired"].inc()

    def drop(self, stream: str) -> None:
        """Get a new token before the next write: what is on its way with the old one is refused from then on."""
        self._take(stream)

    def _take(self, stream: str) -> int | None:
        self._used_at.pop(stream, None)
        return self._tokens.pop(stream, None)

    def let_go(self, stream: str) -> None:
        """Leave a stream to others."""
        token = self._take(stream)
        if token is not None:
            self._changes["released"].inc()
            task = asyncio.get_running_loop().create_task(self._release({stream: token}))
            self._releasing.add(task)
            task.add_done_callback(self._releasing.discard)

    async def renew(self) -> None:
        """Let leases end later; forget those that were lost, and leave to others what they want and we do not need."""
        tokens = dict(self._tokens)
        if not tokens:
            return
        try:
            renewal = await self._store.renew(self._owner, tokens, self._seconds)
        except StoreError as error:
            logger.warning("leases not renewed: %s", error)
            return
        for stream in renewal.lost:
            logger.warning("stream %s was taken over by another worker", stream, extra={"stream": stream})
            if self._tokens.get(stream) == tokens[stream]:
                self._changes["lost"].inc()
                self.drop(stream)
        for stream in filter(self._is_idle, renewal.wanted):
            self.let_go(stream)

    def _is_idle(self, stream: str) -> bool:
        unused = self._clock.monotonic() - self._used_at.get(stream, -math.inf)
        return unused >= self._seconds / RENEWALS_PER_LEASE

    def start(self) -> None:
        """Begin to renew."""
        self._renewing = asyncio.get_running_loop().create_task(self._keep())

    async def stop(self) -> None:
        """Leave all streams to others, in bounded time."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing], timeout=RELEASE_SECONDS)
        tokens, self._tokens = self._tokens, {}
        self._changes["released"].inc(len(tokens))
        with suppress(TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS):
                await asyncio.gather(self._release(tokens), *self._releasing)

    async def _keep(self) -> None:
        while True:
            await self._clock.sleep(self._seconds / RENEWALS_PER_LEASE)
            await self.renew()

    async def _release(self, tokens: Mapping[str, int]) -> None:
        with suppress(StoreError):  # they end by themselves
            await self._store.release(tokens)


def unique_name() -> str:
    """Name this process as no other."""
    return f"{gethostname()}:{getpid()}:{token_hex(4)}"
