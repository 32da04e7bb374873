"""How many bytes the streams of a key take in the store."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from app.security.errors import KeyFull
from app.security.grants import Grant
from app.storage import Store, StoreCorrupt, StoreError, StreamNotFound

MEASURED_SECONDS = 60.0
SHARE = 100
PAGE = 1000


@dataclass(slots=True)
class Figure:
    """The measured bytes of the streams of a pattern, plus what has come since."""

    size_bytes: int = 0
    came_bytes: int = 0
    due: float = -math.inf
    measuring: asyncio.Task[None] | None = None
    is_known: bool = False


class KeptBytes:
    """Measures the streams of keys that have a limit of bytes from time to time, and adds what comes in between.

    Measuring takes at most a hundredth of the time, however many streams there are. While the store is down, the last
    figure holds.
    """

    def __init__(self, store: Store, monotonic: Callable[[], float]) -> None:
        self._store, self._monotonic = store, monotonic
        self._figures: dict[str, Figure] = {}

    async def keep(self, grant: Grant, size_bytes: int) -> None:
        """Add the bytes of a request. Raises KeyFull if its key may keep no more."""
        most = grant.limits.bytes
        if most is None:
            return
        figure = await self._figure(grant.streams)
        if figure.size_bytes + size_bytes > most:
            raise KeyFull(grant.name, grant.streams, most, figure.size_bytes, figure.due - self._monotonic())
        figure.size_bytes += size_bytes
        figure.came_bytes += size_bytes

    @property
    def is_measuring(self) -> bool:
        """Tell whether a measurement is under way."""
        return any(figure.measuring is not None for figure in self._figures.values())

    async def stop(self) -> None:
        """Stop measuring."""
        tasks = [figure.measuring for figure in self._figures.values() if figure.measuring is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _figure(self, streams: str) -> Figure:
        figure = self._figures.setdefault(streams, Figure())
        if figure.measuring is None and self._monotonic() >= figure.due:
            figure.measuring = asyncio.get_running_loop().create_task(self._measure(figure, streams))
        if not figure.is_known and figure.measuring is not None:
            await asyncio.wait([figure.measuring])
        return figure

    async def _measure(self, figure: Figure, streams: str) -> None:
        began, figure.came_bytes = self._monotonic(), 0
        try:
            size_bytes = sum([await self._size(name) async for name in self._names(streams)])
            figure.size_bytes = size_bytes + figure.came_bytes
        except StoreError:
            pass  # the store is down
        finally:
            now = self._monotonic()
            figure.due = now + max(MEASURED_SECONDS, SHARE * (now - began))
            figure.measuring, figure.is_known = None, True

    async def _names(self, streams: str) -> AsyncIterator[str]:
        """Give the streams of a pattern."""
        prefix, star, _ = streams.partition("*")
        if prefix:
            yield prefix  # what is listed comes after it
        page = await self._store.streams(prefix, PAGE) if star else []
        while page and page[0].startswith(prefix):
            for name in page:
                if name.startswith(prefix):
                    yield name
            page = await self._store.streams(page[-1], PAGE)

    async def _size(self, stream: str) -> int:
        try:
            size = await self._store.size(stream)
        except (StreamNotFound, StoreCorrupt):
            return 0
        return size.log_bytes + size.snapshot_bytes
