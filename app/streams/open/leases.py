"""The leases of this worker: of each stream that it writes, it is the only writer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from app.metrics import Metrics
from app.storage import LeaseHeld, Store, StoreError
from app.streams.open.clock import Clock
from app.streams.open.hold_times import HoldTimes

RENEWALS_PER_LEASE = 3
RELEASE_SECONDS = 5.0
HANDOVER_POLL_SECONDS, RETRY_SECONDS = 0.1, 0.05
"""How often a holder looks for requests of other workers, and a waiting worker for a free lease."""

logger = logging.getLogger(__name__)


async def no_handover(_: str) -> None:
    """Hand over nothing."""


class Leases:
    """Acquires, renews and releases this worker's leases, and knows the fencing token of each.

    Safety rests on the token alone: if a lease is lost unnoticed, the next write fails.
    """

    def __init__(
        self, store: Store, owner: str, seconds: float, handover_seconds: float, clock: Clock, metrics: Metrics
    ) -> None:
        self.owner = owner
        self._store, self._seconds, self._clock = store, seconds, clock
        self._handover_seconds = handover_seconds
        self._changes = metrics.lease_changes
        self._tokens: dict[str, int] = {}
        self._hold_times = HoldTimes(clock)
        self._asked_at: dict[str, float] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._releases: set[asyncio.Task[None]] = set()
        self._handovers: dict[str, asyncio.Task[None]] = {}
        self.hand_over: Callable[[str], Awaitable[None]] = no_handover
        """Called with a stream that another worker asks for, once its hold time is over."""

    def holds(self, stream: str) -> bool:
        """Tell whether this worker writes the stream, as far as it knows."""
        return self._store.is_exclusive or stream in self._tokens

    def holding(self) -> Callable[[str], bool]:
        """Give a faster `holds`, to ask about thousands of streams at once."""
        return self.holds if self._store.is_exclusive else self._tokens.__contains__

    def count(self) -> int:
        """Count the leases that this worker has."""
        return len(self._tokens)

    def token(self, stream: str) -> int:
        """Give the fencing token for a write to a stream."""
        return self._tokens.get(stream, 0)

    async def acquire(self, stream: str) -> None:
        """Make this worker the writer of a stream; wait for the holder to hand it over. Raises LeaseHeld."""
        if self.holds(stream):
            return
        await self._let_asker_go_first(stream)
        deadline = self._asking_since(stream) + self._handover_seconds
        while not await self._try_acquire(stream, deadline):
            await self._clock.sleep(RETRY_SECONDS)

    async def take_free(self, stream: str) -> None:
        """Make this worker the writer of a stream unless another one is. Raises LeaseHeld, and asks for nothing."""
        if not self.holds(stream):
            await self._let_asker_go_first(stream)
            await self._take(stream)

    async def _let_asker_go_first(self, stream: str) -> None:
        if pause := self._hold_times.pause_seconds(stream):
            await self._clock.sleep(pause)

    def _asking_since(self, stream: str) -> float:
        """Give the time of the first request for a stream: many requests wait no longer than one."""
        now = self._clock.monotonic()
        if now - self._asked_at.get(stream, now) >= self._seconds:
            del self._asked_at[stream]
        return self._asked_at.setdefault(stream, now)

    async def _try_acquire(self, stream: str, deadline: float) -> bool:
        """Try once; False if the holder was asked and may hand over before the deadline."""
        try:
            await self._take(stream)
        except LeaseHeld as held:
            left = deadline - self._clock.monotonic()
            if held.kept_seconds <= max(left, 0):
                await self._store.ask(stream, held.owner)
            if left <= 0 or held.kept_seconds > left:
                self._changes["refused"].inc()
                raise
            return False
        return True

    async def _take(self, stream: str) -> None:
        seconds = self._hold_times.next_seconds(stream)
        token = await self._store.acquire(stream, self.owner, self._seconds, seconds)
        self._tokens[stream] = token
        self._hold_times.begin(stream, seconds)
        self._asked_at.pop(stream, None)
        self._changes["acquired"].inc()

    def drop(self, stream: str) -> None:
        """Forget a token, so that the next write gets a new one and writes under way with the old one are refused."""
        if self._tokens.pop(stream, None) is not None:
            self._hold_times.end(stream, handed_over=False)

    def release(self, stream: str) -> None:
        """Give a stream up to other workers."""
        token, handed_over = self._tokens.pop(stream, None), stream in self._handovers
        if token is None:
            return
        self._hold_times.end(stream, handed_over=handed_over)
        self._changes["handed_over" if handed_over else "released"].inc()
        self._release_soon({stream: token})

    def _release_soon(self, tokens: Mapping[str, int]) -> None:
        task = asyncio.get_running_loop().create_task(self._release(tokens))
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    async def _release(self, tokens: Mapping[str, int]) -> None:
        with suppress(StoreError):  # leases expire by themselves
            await self._store.release(tokens)

    async def renew(self) -> None:
        """Extend all leases, and forget those that were lost."""
        self._forget_old()
        tokens = dict(self._tokens)
        if not tokens:
            return
        try:
            lost = await self._store.renew(self.owner, tokens, self._seconds)
        except StoreError as error:
            logger.warning("leases not renewed: %s", error)
            return
        for stream in lost:
            logger.warning("stream %s was taken over by another worker", stream, extra={"stream": stream})
            if self._tokens.get(stream) == tokens[stream]:
                self._changes["lost"].inc()
                self.drop(stream)

    def _forget_old(self) -> None:
        self._hold_times.forget_old()
        before = self._clock.monotonic() - self._seconds
        self._asked_at = {stream: at for stream, at in self._asked_at.items() if at > before}

    async def hand_over_requested(self) -> None:
        """Begin to hand over the streams that others ask for and whose hold time is over; others must ask again."""
        if not self._tokens:
            return
        try:
            requested = await self._store.wanted(self.owner)
        except StoreError:
            return
        for stream in requested:
            is_ours = stream in self._tokens and stream not in self._handovers
            if is_ours and self._hold_times.is_over(stream):
                task = asyncio.get_running_loop().create_task(self._hand_over(stream))
                self._handovers[stream] = task

    async def _hand_over(self, stream: str) -> None:
        try:
            await self.hand_over(stream)
        finally:
            del self._handovers[stream]

    def start(self) -> None:
        """Begin to renew leases and to look for requests of other workers."""
        if not self._store.is_exclusive:
            rounds = (
                (self._seconds / RENEWALS_PER_LEASE, self.renew),
                (HANDOVER_POLL_SECONDS, self.hand_over_requested),
            )
            self._tasks = [asyncio.get_running_loop().create_task(self._repeat(*each)) for each in rounds]

    async def _repeat(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._clock.sleep(seconds)
            await work()

    async def finish(self) -> None:
        """Wait for the handovers and releases that have begun."""
        await asyncio.gather(*self._handovers.values(), return_exceptions=True)
        await asyncio.gather(*self._releases)

    async def stop(self) -> None:
        """Release all leases, in bounded time."""
        for task in self._tasks:
            task.cancel()
        tokens, self._tokens = self._tokens, {}
        self._changes["released"].inc(len(tokens))
        with suppress(TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS):
                await asyncio.gather(*self._tasks, *self._handovers.values(), return_exceptions=True)
                self._release_soon(tokens)
                await self.finish()
