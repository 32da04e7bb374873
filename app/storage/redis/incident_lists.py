"""The lists that name incidents of all streams: where they are, and which have changed."""

import asyncio
from collections.abc import Sequence
from itertools import chain
from time import time

from app.storage.incidents import MARKS_KEPT, NEW, IncidentChange, IncidentKey, IncidentRow, Mark, lane_bounds
from app.storage.interface import Append
from app.storage.log import Position
from app.storage.redis.calls import Calls, parts
from app.storage.redis.keys import CHANGES, INCIDENTS

MARKS_AT_ONCE = 1000


class IncidentLists:
    """Writes these lists. They have keys of their own, so no script changes them together with a stream."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def announce(self, appends: Sequence[Append]) -> None:
        """List the incidents of appends and mark their changes, before the store has them."""
        told = [one for one in appends if one.incidents]
        listing = [self.add(one.stream, one.incidents) for one in told]
        marking = [self._mark(one.stream, one.entry.position, one.incidents) for one in told]
        await asyncio.gather(*listing, *marking)

    async def add(self, stream: str, rows: Sequence[IncidentRow]) -> None:
        """List the places of incidents."""
        if rows:
            places = [str(IncidentKey(row.opened, stream, row.seq)) for row in rows]
            await self._add_to(INCIDENTS, places)

    async def move_changes(self, gone: Sequence[Mark], come: Sequence[Mark]) -> None:
        """Move marks: what comes is kept before anything goes."""
        for part in parts(map(str, come), MARKS_AT_ONCE):
            await self._calls.keep("ZADD", CHANGES, *chain.from_iterable((0, mark) for mark in part))
        for part in parts(map(str, gone), MARKS_AT_ONCE):
            await self._calls.keep("ZREM", CHANGES, *part)

    async def _mark(self, stream: str, position: Position, rows: Sequence[IncidentRow]) -> None:
        """Mark those incidents that the event at a position is about to change."""
        now = round(time() * 1000)
        news = [str(IncidentChange(now, stream, row.seq, position)) for row in rows if row.is_news]
        if news:
            await self._add_to(CHANGES, news)

    async def _add_to(self, key: str, members: Sequence[str]) -> None:
        """Add to the first range of a sorted set, which keeps its newest members only."""
        least, most = lane_bounds(NEW)
        await self._calls.keep("ZADD", key, *chain.from_iterable((0, member) for member in members))
        excess = await self._calls.send("ZLEXCOUNT", key, f"({least}", f"({most}") - MARKS_KEPT
        if excess > 0:
            await self._calls.send("ZREMRANGEBYRANK", key, 0, excess - 1)
