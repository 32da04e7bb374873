"""The leases of this worker: of each stream that it writes, it is the only writer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from os import getpid
from secrets import token_hex
from socket import gethostname

from app.metrics import Metrics
from app.storage import LeaseHeld, Store, StoreError
from app.streams.open.clock import Clock
from app.streams.open.stays import Stays

RENEWALS_PER_LEASE = 3
RELEASE_SECONDS = 5.0
# A holder looks so often for wishes of others, and who waits for a stream looks so often whether it is free.
LOOK_SECONDS, RETRY_SECONDS = 0.1, 0.05

logger = logging.getLogger(__name__)


async def keep(_: str) -> None:
    """Hand over nothing."""


class Leases:
    """Acquires, renews and releases leases, and knows the token of each.

    What happens to a stream rests on the token alone: a lease that is lost unnoticed makes the next write fail.
    """

    def __init__(
        self, store: Store, owner: str, seconds: float, handover_seconds: float, clock: Clock, metrics: Metrics
    ) -> None:
        self._store, self._owner, self._seconds, self._clock = store, owner, seconds, clock
        self._handover_seconds = handover_seconds
        self._changes = metrics.lease_changes
        self._tokens: dict[str, int] = {}
        self._stays = Stays(clock)
        self._asked_at: dict[str, float] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._releasing: set[asyncio.Task[None]] = set()
        self._leaving: dict[str, asyncio.Task[None]] = {}
        self.hand_over: Callable[[str], Awaitable[None]] = keep
        """Called with a stream that another worker wants and that has stayed here long enough."""

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

    async def acquire(self, stream: str) -> None:
        """Make this worker the writer of a stream, after its holder has handed it over. Raises LeaseHeld."""
        if self.holds(stream):
            return
        if pause := self._stays.pause_seconds(stream):
            await self._clock.sleep(pause)
        ends = self._begin_to_ask(stream) + self._handover_seconds
        while not await self._acquire(stream, ends):
            await self._clock.sleep(RETRY_SECONDS)

    def _begin_to_ask(self, stream: str) -> float:
        """Give the time since when a stream is asked for: many requests for it wait no longer than one."""
        now = self._clock.monotonic()
        if now - self._asked_at.get(stream, now) >= self._seconds:
            del self._asked_at[stream]
        return self._asked_at.setdefault(stream, now)

    async def _acquire(self, stream: str, ends: float) -> bool:
        """Try once; False: the holder is asked, and it is worth while to wait until then."""
        seconds = self._stays.next_seconds(stream)
        try:
            token = await self._store.acquire(stream, self._owner, self._seconds, seconds)
        except LeaseHeld as held:
            left = ends - self._clock.monotonic()
            if held.kept_seconds <= max(left, 0):
                await self._store.ask(stream, held.owner)
            if left <= 0 or held.kept_seconds > left:
                self._changes["refused"].inc()
                raise
            return False
        self._tokens[stream] = token
        self._stays.begin(stream, seconds)
        self._asked_at.pop(stream, None)
        self._changes["acquired"].inc()
        return True

    def drop(self, stream: str) -> None:
        """Get a new token before the next write: what is on its way with the old one is refused from then on."""
        if self._tokens.pop(stream, None) is not None:
            self._stays.end(stream, handed_over=False)

    def let_go(self, stream: str) -> None:
        """Leave a stream to others."""
        token, handed_over = self._tokens.pop(stream, None), stream in self._leaving
        if token is None:
            return
        self._stays.end(stream, handed_over=handed_over)
        self._changes["handed_over" if handed_over else "released"].inc()
        task = asyncio.get_running_loop().create_task(self._release({stream: token}))
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)

    async def renew(self) -> None:
        """Let leases end later, and forget those that were lost."""
        self._forget_old()
        tokens = dict(self._tokens)
        if not tokens:
            return
        try:
            lost = await self._store.renew(self._owner, tokens, self._seconds)
        except StoreError as error:
            logger.warning("leases not renewed: %s", error)
            return
        for stream in lost:
            logger.warning("stream %s was taken over by another worker", stream, extra={"stream": stream})
            if self._tokens.get(stream) == tokens[stream]:
                self._changes["lost"].inc()
                self.drop(stream)

    def _forget_old(self) -> None:
        self._stays.forget_old()
        before = self._clock.monotonic() - self._seconds
        self._asked_at = {stream: at for stream, at in self._asked_at.items() if at > before}

    async def look(self) -> None:
        """Hand over what others have asked for and what has stayed long enough; the rest they ask for again."""
        if not self._tokens:
            return
        try:
            wanted = await self._store.wanted(self._owner)
        except StoreError:
            return
        for stream in wanted & self._tokens.keys() - self._leaving.keys():
            if self._stays.is_over(stream):
                task = asyncio.get_running_loop().create_task(self._leave(stream))
                self._leaving[stream] = task

    async def _leave(self, stream: str) -> None:
        try:
            await self.hand_over(stream)
        finally:
            del self._leaving[stream]

    def start(self) -> None:
        """Begin to renew, and to look for wishes."""
        if not self._store.is_exclusive:
            rounds = ((self._seconds / RENEWALS_PER_LEASE, self.renew), (LOOK_SECONDS, self.look))
            self._tasks = [asyncio.get_running_loop().create_task(self._repeat(*each)) for each in rounds]

    async def stop(self) -> None:
        """Leave all streams to others, in bounded time."""
        for task in self._tasks:
            task.cancel()
        tokens, self._tokens = self._tokens, {}
        self._changes["released"].inc(len(tokens))
        with suppress(TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS):
                await asyncio.gather(*self._tasks, *self._leaving.values(), return_exceptions=True)
                await asyncio.gather(self._release(tokens), *self._releasing)

    async def _repeat(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._clock.sleep(seconds)
            await work()

    async def _release(self, tokens: Mapping[str, int]) -> None:
        with suppress(StoreError):  # they end by themselves
            await self._store.release(tokens)


def unique_name() -> str:
    """Name this process as no other."""
    return f"{gethostname()}:{getpid()}:{token_hex(4)}"
