"""One server, or the primary that Sentinels name."""

from collections.abc import Sequence
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.sentinel import Sentinel

from app.storage.errors import StoreError
from app.storage.redis.dedicated import DedicatedConnection
from app.storage.redis.servers import DEFAULTS, RETRIES, CountedBackoff, Info, Words, judge, merge, retry

POOL_SECONDS = 5.0
# What one server may turn out to be, though the URL does not say so.
MODES = {
    "sentinel": "a Sentinel: its URL is redis+sentinel://host:port/name",
    "cluster": "a node of a Cluster: its URL is redis+cluster://host:port",
}


class OneServer:
    """A single server, or whatever answers at one address."""

    leases_together = 256

    def __init__(self, url: str) -> None:
        self.backoff = CountedBackoff()
        again = retry(self.backoff)
        pool = BlockingConnectionPool.from_url(url, retry=again, protocol=2, timeout=POOL_SECONDS, **DEFAULTS)
        self._use(Redis.from_pool(pool))

    def _use(self, client: Redis) -> None:
        self._client = client
        self.timeout_seconds = float(client.connection_pool.connection_kwargs["socket_timeout"])
        self._dedicated = DedicatedConnection(client.connection_pool, self.timeout_seconds, RETRIES, self.backoff)

    async def open(self) -> None:
        """Check that the server answers, and that it is of the kind that the URL says."""
        await self.ask("PING")
        about = await self.ask("INFO", "server")
        mode = about.get("redis_mode", about.get("server_mode"))  # Redis', Valkey's
        if mode in MODES:
            raise StoreError(f"Redis: this is {MODES[mode]}")

    async def close(self) -> None:
        """Close all connections."""
        await self._dedicated.close()
        await self._client.aclose()

    async def exchange(self, commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
        """Send commands in one pipeline, and `waits` behind them."""
        pipeline = self._client.pipeline(transaction=False)
        for words in (*commands, *waits):
            pipeline.execute_command(*words)
        answers = await pipeline.execute(raise_on_error=False)
        return judge(answers[: len(commands)], answers[len(commands) :])

    async def exchange_short(self, commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
        """Do the same on the dedicated connection."""
        answers = await self._dedicated.exchange((*commands, *waits))
        return judge(answers[: len(commands)], answers[len(commands) :])

    async def info(self, *sections: str) -> list[Info]:
        """Get INFO from the server."""
        return [merge([await self.ask("INFO", section) for section in sections])]

    async def ask(self, *words: Any) -> Any:
        """Send one command."""
        return await self._client.execute_command(*words)  # type: ignore[no-untyped-call]


class SentinelPrimary(OneServer):
    """The primary that Sentinels name, whichever server that is at the time."""

    def __init__(self, sentinels: list[tuple[str, int]], service: str, options: dict[str, Any]) -> None:
        for_sentinels = {name: value for name, value in options.items() if name.startswith(("socket_", "ssl"))}
        for name in [name for name in options if name.startswith("sentinel_")]:
            for_sentinels[name.removeprefix("sentinel_")] = options.pop(name)
        self.backoff = CountedBackoff()
        again = retry(self.backoff)
        kwargs = {**for_sentinels, "protocol": 2, "retry": again}
        self._sentinel = Sentinel(sentinels, sentinel_kwargs=kwargs)  # type: ignore[no-untyped-call]
        self._use(self._sentinel.master_for(service, retry=again, protocol=2, **options))

    async def close(self) -> None:
        """Close the connections to the primary and to the Sentinels."""
        await super().close()
        await self._sentinel.aclose()
