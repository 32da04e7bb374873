"""How fast a key may use the service."""

import math
from collections.abc import Callable
from typing import Literal

from limits import RateLimitItem
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from app.security.errors import BeyondRate, RateLimited
from app.security.grants import Grant
from app.storage import StoreUnavailable

BLIND_SECONDS = 5.0
MARGIN_SECONDS = 0.001
Window = tuple[int, float, int, float]
Limit = Literal["requests", "samples"]


class Quotas:
    """Counts what keys use, in windows that all workers of a Redis share. Only keys with a rate pay for it.

    A key that has used up its rate is refused from memory until a request can pass again. While the store is down, no
    rate is counted: reads go on, and writes fail anyway.
    """

    def __init__(self, windows: MemoryStorage, monotonic: Callable[[], float]) -> None:
        self._windows = windows
        self._limiter = SlidingWindowCounterRateLimiter(windows)
        self._monotonic = monotonic
        self._closed_until: dict[str, float] = {}
        self._blind_until = -math.inf

    async def charge(self, grant: Grant, limit: Limit, cost: int) -> None:
        """Count requests or samples. Raises RateLimited, BeyondRate."""
        rate = rate_of(grant, limit)
        if rate is None:
            return
        if cost > rate.amount:
            raise BeyondRate(limit, grant.name, rate, cost)
        self.refuse_closed(grant, limit, cost)
        if self._monotonic() < self._blind_until:
            return
        try:
            if not await self._limiter.hit(rate, limit, str(grant.name), cost=cost):
                await self._refuse(grant, limit, rate, cost)
        except StoreUnavailable:
            self._blind_until = self._monotonic() + BLIND_SECONDS

    def refuse_closed(self, grant: Grant, limit: Limit, cost: int = 1) -> None:
        """Raise RateLimited for a key that has used up its rate, before any work is done for it."""
        rate = rate_of(grant, limit)
        if rate is None or not self._closed_until:
            return
        seconds = self._closed_until.get(key_of(grant, limit, rate), -math.inf) - self._monotonic()
        if seconds > 0:
            raise RateLimited(limit, grant.name, rate, cost, seconds)

    async def _refuse(self, grant: Grant, limit: Limit, rate: RateLimitItem, cost: int) -> None:
        key = key_of(grant, limit, rate)
        window = await self._windows.get_sliding_window(key, rate.get_expiry())
        self._close(key, wait_seconds(window, rate, 1))
        raise RateLimited(limit, grant.name, rate, cost, wait_seconds(window, rate, cost))

    def _close(self, key: str, seconds: float) -> None:
        now = self._monotonic()
        self._closed_until = {closed: until for closed, until in self._closed_until.items() if until > now}
        if seconds > 0:
            self._closed_until[key] = now + seconds


def rate_of(grant: Grant, limit: Limit) -> RateLimitItem | None:
    """Give the rate of a key, if it has one."""
    return grant.requests if limit == "requests" else grant.samples


def key_of(grant: Grant, limit: Limit, rate: RateLimitItem) -> str:
    """Name a key's window."""
    return rate.key_for(limit, str(grant.name))


def wait_seconds(window: Window, rate: RateLimitItem, cost: int) -> float:
    """Give the time after which this many can pass, if nothing else comes.

    The count of the previous window fades evenly until this window ends; then this one fades in its place. What is left
    of a count is rounded down.
    """
    before, before_seconds, now, now_seconds = window
    length, room = rate.get_expiry(), rate.amount - cost
    if now <= room:
        wait = before_seconds - (room - now + 1) * length / before if before else -1.0
    else:
        wait = max(0.0, now_seconds - length) + max(0.0, length * (1 - (room + 1) / now))
    return max(0.0, wait + MARGIN_SECONDS)
