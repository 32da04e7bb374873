"""Calls to the servers of a store: which pipeline a call takes, and its script."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from app.storage.errors import StoreCorrupt, StoreError, StoreUnavailable
from app.storage.interface import Durability
from app.storage.redis.durability import waits_for
from app.storage.redis.errors import wrap_refusal
from app.storage.redis.keys import stream_keys
from app.storage.redis.pipeline import Exchange, Pipeline
from app.storage.redis.replies import foreign_keys
from app.storage.redis.scripts import read_script
from app.storage.redis.servers import Servers, Words

# A single lane makes waiting appends share a pipeline; other calls may be long, so they may overtake each other.
APPEND_LANES, APPEND_GROUP = 1, 128
OTHER_LANES, OTHER_GROUP = 6, 16
CHANGE_LANES, CHANGE_GROUP = 4, 16
LEASE_LANES, LEASE_GROUP = 1, 4096

T = TypeVar("T")


class Calls:
    """Sends plain commands, and runs one script per store method.

    Appends and changes are acknowledged to clients, so their pipelines wait until the servers keep them as promised.
    """

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._unopened: str | None = "Redis: not opened yet"
        self._appends = Pipeline(self._once_open(servers.exchange_short), APPEND_LANES, APPEND_GROUP)
        exchange = self._once_open(servers.exchange)
        self.changes = Pipeline(exchange, CHANGE_LANES, CHANGE_GROUP)
        self.leases = Pipeline(exchange, LEASE_LANES, LEASE_GROUP)
        self.others = Pipeline(exchange, OTHER_LANES, OTHER_GROUP)

    async def open(self, durability: Durability) -> None:
        """Check that the servers answer, and find out how to wait until they keep what is written.

        Raises StoreUnavailable while they cannot serve yet, another StoreError for what only an operator can mend.
        """
        try:
            await self._servers.open()
            waits = await waits_for(self._servers, durability)
        except Exception as error:
            refusal = wrap_refusal(error)
            self._unopened = str(refusal)
            raise refusal from error
        self._appends.waits = self.changes.waits = waits
        self._unopened = None

    async def close(self) -> None:
        """Wait for answers and close the connections."""
        for pipeline in (self._appends, self.changes, self.leases, self.others):
            await pipeline.close()
        await self._servers.close()

    async def send(self, *words: Any) -> Any:
        """Send one plain command."""
        return await self.others.send(*words)

    async def keep(self, *words: Any) -> Any:
        """Send one plain command whose effect must be kept as promised."""
        return await self.changes.send(*words)

    async def read(self, script: str, stream: str, *arguments: Any) -> list[Any]:
        """Run a script that is not acknowledged to a client."""
        return await self._run(self.others, script, stream, *arguments)

    async def change(self, script: str, stream: str, *arguments: Any) -> list[Any]:
        """Run a script whose effect must be kept as promised."""
        return await self._run(self.changes, script, stream, *arguments)

    async def append(self, stream: str, *arguments: Any) -> list[Any]:
        """Run the script that appends to a log; its effect must be kept as promised."""
        return await self._run(self._appends, "append", stream, *arguments)

    async def append_each(self, appends: Sequence[tuple[str, Sequence[Any]]]) -> list[list[Any] | StoreError]:
        """Run that script for each stream with its arguments; for each the reply, or what went wrong."""
        script = read_script("append")
        waiting = [self._appends.start(script, stream_keys(stream), *arguments) for stream, arguments in appends]
        replies = await asyncio.gather(*waiting, return_exceptions=True)
        return [await self._told(stream, reply) for (stream, _), reply in zip(appends, replies, strict=True)]

    async def _told(self, stream: str, reply: list[Any] | BaseException) -> list[Any] | StoreError:
        """Give a reply, or an error of the store; raise any other error."""
        match reply:
            case StoreCorrupt():
                return await self.explained(stream, reply)
            case StoreError():
                return reply
            case BaseException():
                raise reply
        return reply

    async def explained(self, stream: str, error: StoreCorrupt) -> StoreCorrupt:
        """Name the stream, and its keys that have another type than they must."""
        types = [str(await self.send("TYPE", key), "ascii") for key in stream_keys(stream)]
        return StoreCorrupt(stream, "; ".join(foreign_keys(stream, types)) or error.gap)

    async def _run(self, pipeline: Pipeline, script: str, stream: str, *arguments: Any) -> list[Any]:
        try:
            reply: list[Any] = await pipeline.start(read_script(script), stream_keys(stream), *arguments)
        except StoreCorrupt as error:
            raise await self.explained(stream, error) from error
        return reply

    def _once_open(self, exchange: Exchange) -> Exchange:
        """Send nothing before it is known how the servers keep what is written."""

        async def send(commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
            if self._unopened is not None:
                raise StoreUnavailable(self._unopened)
            return await exchange(commands, waits)

        return send


def parts(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Split items into lists of at most `size`."""
    remaining = iter(items)
    while part := list(islice(remaining, size)):
        yield part
