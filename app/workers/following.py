"""Gives up streams of which a worker gets nothing any more but the records that others send."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from app.storage import Position
from app.streams.open.registry import Registry

FOLLOW_SECONDS: Final = 60.0
AT_ONCE: Final = 16
"""Each stream given up is stored, which takes some milliseconds."""


@dataclass(slots=True)
class Visited:
    """A stream's log after the last records from another worker, and since when only these change it."""

    position: Position
    since: float
    seen_at: float


class Following:
    """Moves streams to where their records come from, for example back to a worker that was restarted."""

    def __init__(self, registry: Registry) -> None:
        self._registry, self._clock = registry, registry.worker.clock
        self._visited: dict[str, Visited] = {}
        self._forget_at = 0.0

    def arrived(self, streams: Iterable[str]) -> None:
        """Note that another worker sends records of these streams; call it before they are learned."""
        now = self._clock.monotonic()
        self._forget_old(now)
        for stream, position in self._positions(streams).items():
            visited = self._visited.get(stream)
            if visited is None or visited.position != position:
                self._visited[stream] = Visited(position, now, now)

    def learned(self, streams: Iterable[str]) -> list[str]:
        """Note that the records were learned; give those streams that are to be given up, a few at a time."""
        now, due = self._clock.monotonic(), list[str]()
        for stream, position in self._positions(streams).items():
            visited = self._visited.setdefault(stream, Visited(position, now, now))
            visited.position, visited.seen_at = position, now
            if now - visited.since >= FOLLOW_SECONDS and len(due) < AT_ONCE:
                due.append(stream)
        return due

    async def give_up(self, streams: Iterable[str]) -> None:
        """Store and release streams, so that the worker that sends their records can take them."""
        for stream in streams:
            self._visited.pop(stream, None)
            await self._registry.hand_over(stream)
        await self._registry.worker.leases.finish()

    def _positions(self, streams: Iterable[str]) -> Mapping[str, Position]:
        """Give how far the logs go of those streams that this worker writes."""
        states = ((stream, self._registry.peek(stream)) for stream in streams)
        return {stream: state.position for stream, state in states if state is not None}

    def _forget_old(self, now: float) -> None:
        if now >= self._forget_at:
            old = now - FOLLOW_SECONDS
            self._visited = {stream: one for stream, one in self._visited.items() if one.seen_at > old}
            self._forget_at = now + FOLLOW_SECONDS
