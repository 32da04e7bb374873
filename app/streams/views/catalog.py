"""What can be read of streams without opening one."""

from collections.abc import Sequence

from app.storage import IncidentKey, Silence, Store
from app.streams.log.incident_ids import read_one
from app.streams.log.incidents import Incident
from app.streams.open.registry import Registry
from app.streams.views.fleet import Fleet, Visible
from app.streams.views.history import LogView, open_log
from app.streams.views.incidents import Found, Wanted, find
from app.streams.views.orders import Cursor, Order
from app.streams.views.overview import Overview, overviews
from app.streams.views.tail import Tail
from app.streams.views.totals import Summing


class Catalog:
    """Lists streams, and gives their logs."""

    def __init__(self, registry: Registry, store: Store) -> None:
        self._registry, self._store = registry, store
        self.fleet = Fleet(registry, store)

    async def names(self, after: str, limit: int) -> list[str]:
        """List up to `limit` streams whose names come after `after`, in order."""
        return await self._store.streams(after, limit)

    async def silences(self, streams: Sequence[str]) -> dict[str, Silence]:
        """Say how long each stream has been silent; leave out those that cannot be read."""
        return await self._store.silences(streams)

    async def overviews(self, streams: Sequence[str]) -> list[Overview]:
        """Say of each stream in short how it stands; leave out those that are found to be gone."""
        return await overviews(self._registry, self._store, streams)

    async def in_order(
        self, order: Order, after: Cursor | None, limit: int, visible: Visible, prefix: str = ""
    ) -> tuple[list[str], Cursor | None]:
        """List visible streams in an order, and say where to go on; the newest changes may take a second or two."""
        return await self.fleet.page(order, after, limit, visible, prefix)

    async def sum_up(self, visible: Visible, prefix: str, silent_seconds: float) -> Summing:
        """Sum up visible streams."""
        summing = Summing(prefix, silent_seconds, self._registry.worker.clock.now())
        async for part in self.fleet.parts(visible, prefix):
            summing.add(part)
        return summing

    async def incidents(self, wanted: Wanted, before: IncidentKey | None, limit: int) -> Found:
        """List incidents, the newest first."""
        return await find(self._store, wanted, before, limit)

    async def incident(self, key: IncidentKey) -> Incident:
        """Give one incident. Raises UnknownIncident."""
        return await read_one(self._store, key)

    async def log(self, stream: str) -> LogView:
        """Find the ends of a stream's log; UnknownStream if there is none."""
        return await open_log(self._registry.worker.log(stream))

    def tail(self, stream: str) -> Tail:
        """Make a watcher's place in a stream's log."""
        return Tail(self._registry, self._store, stream)
