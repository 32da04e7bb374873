"""Tells the watchers in this process that a stream's log has changed."""

import asyncio
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from app.streams.errors import TooManyWatchers, TooManyWatchersOfKey


class Subscription:
    """One watcher's signal that a log has grown, was replaced or was deleted; the log says what happened."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self.is_new_log = False

    def notify(self, *, is_new_log: bool) -> None:
        """Wake the watcher."""
        self.is_new_log |= is_new_log
        self._changed.set()

    async def wait(self, seconds: float) -> None:
        """Wait for a change since the last wait, at most this long."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()


class WatchLimit(NamedTuple):
    """How many may watch with one key, and the setting that says so."""

    key: str
    most: float
    by: str


NO_LIMIT = WatchLimit("", math.inf, "")


class Subscriptions:
    """The subscriptions by stream; a stream without any costs its writer one look into a dictionary."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._count_by_key: Counter[str] = Counter()
        self._by_stream: dict[str, set[Subscription]] = {}

    def __len__(self) -> int:
        return self._count

    @contextmanager
    def subscribe(self, stream: str, limit: WatchLimit = NO_LIMIT) -> Iterator[Subscription]:
        """Subscribe to a stream until the block is left. Raises TooManyWatchers."""
        self._refuse_beyond(limit)
        subscription = Subscription()
        self._count += 1
        self._count_by_key[limit.key] += 1
        self._by_stream.setdefault(stream, set()).add(subscription)
        try:
            yield subscription
        finally:
            self._remove(stream, subscription, limit.key)

    def _remove(self, stream: str, subscription: Subscription, key: str) -> None:
        self._count -= 1
        self._count_by_key[key] -= 1
        if not self._count_by_key[key]:
            del self._count_by_key[key]
        self._by_stream[stream].discard(subscription)
        if not self._by_stream[stream]:
            del self._by_stream[stream]

    def _refuse_beyond(self, limit: WatchLimit) -> None:
        if self._count_by_key[limit.key] >= limit.most:
            raise TooManyWatchersOfKey(int(limit.most), limit.by, limit.key)
        if self._count >= self._most:
            raise TooManyWatchers(self._most)

    def notify(self, stream: str, *, is_new_log: bool = False) -> None:
        """Wake the watchers of a stream."""
        for subscription in self._by_stream.get(stream, ()):
            subscription.notify(is_new_log=is_new_log)

    def notify_all(self) -> None:
        """Wake all watchers."""
        for stream in self._by_stream:
            self.notify(stream)
