"""Who waits for news of which stream in this process."""

import asyncio
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from app.streams.errors import TooManyWatchers, TooManyWatchersOfKey


class Bell:
    """Rings when a stream's log has grown, or has been replaced or deleted; what happened is read from the log."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()
        self.is_new_log = False

    def ring(self, *, is_new_log: bool) -> None:
        """Wake who waits."""
        self.is_new_log |= is_new_log
        self._rung.set()

    async def wait(self, seconds: float) -> None:
        """Wait until it has rung since the last time, so long at most."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return
        self._rung.clear()


class Share(NamedTuple):
    """How many may watch with one key."""

    key: str
    most: float
    by: str


NO_SHARE = Share("", math.inf, "")


class Listeners:
    """The bells, by stream: a stream that nobody listens to costs its writer one look into a dictionary."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._of_keys: Counter[str] = Counter()
        self._bells: dict[str, set[Bell]] = {}

    def __len__(self) -> int:
        return self._count

    @contextmanager
    def joined(self, stream: str, share: Share = NO_SHARE) -> Iterator[Bell]:
        """Give a bell for a stream, as long as it is needed. Raises TooManyWatchers."""
        self._refuse_beyond(share)
        bell = Bell()
        self._count += 1
        self._of_keys[share.key] += 1
        self._bells.setdefault(stream, set()).add(bell)
        try:
            yield bell
        finally:
            self._count -= 1
            self._leave(share.key)
            bells = self._bells[stream]
            bells.discard(bell)
            if not bells:
                del self._bells[stream]

    def _leave(self, key: str) -> None:
        self._of_keys[key] -= 1
        if not self._of_keys[key]:
            del self._of_keys[key]

    def _refuse_beyond(self, share: Share) -> None:
        if self._of_keys[share.key] >= share.most:
            raise TooManyWatchersOfKey(int(share.most), share.by, share.key)
        if self._count >= self._most:
            raise TooManyWatchers(self._most)

    def wake(self, stream: str, *, is_new_log: bool = False) -> None:
        """Ring the bells of a stream."""
        for bell in self._bells.get(stream, ()):
            bell.ring(is_new_log=is_new_log)

    def wake_all(self) -> None:
        """Ring all bells."""
        for bells in self._bells.values():
            for bell in bells:
                bell.ring(is_new_log=False)
