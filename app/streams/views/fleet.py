"""All streams at once, by their summaries: in an order, in sum, and grouped by the beginnings of their names."""

import asyncio
import random
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from heapq import nsmallest
from itertools import islice
from time import perf_counter
from typing import Final

from app.storage import Store, StoreError, SummaryRow
from app.streams.open.registry import Registry
from app.streams.open.summary import Summary, read_summary, summary_of_stored
from app.streams.open.worker import Worker
from app.streams.views.orders import Cursor, Order, value_of

FRESH_SECONDS: Final = 1.0
TIMES_AS_LONG: Final = 10
"""A table serves so many times as long as it took to make: so no more than a tenth of the time is spent on it."""
PER_STEP: Final = 1_000
"""Streams that are read, or looked at, before others have their turn: some milliseconds."""
MOST_OVERLAID: Final = 1_000
FILLED_AT_ONCE: Final = 50
FILL_SECONDS: Final = 0.5
"""A round describes so many streams, or fewer if their logs are long: it comes after a pause ten times as long."""
LAST: Final = "\x7f"

Visible = Callable[[list[str]], list[str]]
"""Gives those of some streams that are asked for and may be told of."""


class Fleet:
    """A table of the summaries of all streams, made anew when it is asked for and a second old or more."""

    def __init__(self, registry: Registry, store: Store) -> None:
        self._registry, self._store, self._clock = registry, store, registry.worker.clock
        self._names: list[str] = []
        self._streams: dict[str, Summary] = {}
        self._unknown: list[str] = []
        self._good_until = -1.0
        self._making = asyncio.Lock()

    def forget(self) -> None:
        """Make the table again at the next question."""
        self._good_until = -1.0

    async def page(
        self, order: Order, after: Cursor | None, limit: int, visible: Visible, prefix: str = ""
    ) -> tuple[list[str], Cursor | None]:
        """Give up to `limit` visible streams after a place in an order, and where to go on if there are more."""
        now, best = self._clock.now(), list[Cursor]()
        async for summaries in self.parts(visible, prefix):
            cursors = (Cursor(value_of(order, one, now), one.stream) for one in summaries)
            best = nsmallest(limit + 1, [*best, *(one for one in cursors if after is None or one > after)])
        return [one.stream for one in best[:limit]], best[limit - 1] if len(best) > limit else None

    async def parts(self, visible: Visible, prefix: str = "") -> AsyncIterator[list[Summary]]:
        """Give the visible streams whose names begin with a prefix, in order, a part at a time."""
        await self._refresh()
        names, streams = self._names, self._streams
        begin, end = bisect_left(names, prefix), bisect_left(names, prefix + LAST)
        for first in range(begin, end, PER_STEP):
            yield [streams[name] for name in visible(names[first : min(end, first + PER_STEP)])]
            await asyncio.sleep(0)

    async def _refresh(self) -> None:
        """Make the table again unless it is fresh; requests that come meanwhile wait for the same one."""
        async with self._making:
            if self._clock.monotonic() < self._good_until:
                return
            began = perf_counter()
            streams = await self._read()
            self._names, self._streams = list(streams), streams  # the store lists them in order
            self._unknown = [name for name, summary in streams.items() if not summary.is_told]
            fresh = max(FRESH_SECONDS, TIMES_AS_LONG * (perf_counter() - began))
            self._good_until = self._clock.monotonic() + fresh

    async def _read(self) -> dict[str, Summary]:
        found, after = dict[str, Summary](), ""
        while page := await self._store.summaries(after, PER_STEP):
            found.update((stream, read_summary(stream, body)) for stream, body in page)
            after = page[-1][0]
            await asyncio.sleep(0)
        changed = (session for session in list(self._registry.sessions.values()) if session.summary_is_due)
        for session in islice(changed, MOST_OVERLAID):
            if session.stream in found and (summary := session.summary()) is not None:
                found[session.stream] = summary
        for stream in found.keys() & self._registry.worker.health.damaged.keys():
            found[stream] = Summary(stream=stream, readable=False)
        return found

    async def fill(self) -> None:
        """Describe some of those streams that have no summary, as after an upgrade, by what is stored of them."""
        random.shuffle(self._unknown)  # so that workers that do this at once meet each other less often
        rows, end = list[SummaryRow](), perf_counter() + FILL_SECONDS
        with suppress(StoreError):
            while self._unknown and len(rows) < FILLED_AT_ONCE and perf_counter() < end:
                rows += await described(self._registry.worker, [self._unknown.pop()], self._clock.now())
            await self._store.put_summaries(rows)


async def described(worker: Worker, streams: Sequence[str], now: float) -> list[SummaryRow]:
    """Describe streams by what is stored of them, one after the other."""
    rows, silences = [], await worker.store.silences(streams)
    for stream in streams:
        await asyncio.sleep(0)
        written_at = now - silences[stream].seconds if stream in silences else None
        if (summary := await summary_of_stored(worker.log(stream), written_at)) is not None:
            rows.append(SummaryRow(stream, summary.to_bytes(), only_if_missing=True))
    return rows
