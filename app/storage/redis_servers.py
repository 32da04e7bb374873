"""How the servers behind a URL are reached: one server, the primary that Sentinels name, or the nodes of a Cluster."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from redis._parsers import AsyncCommandsParser
from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import ExponentialBackoff
from redis.exceptions import MovedError

from app.storage.base import StoreUnavailable
from app.storage.redis_line import RedisLine

# A verb waits for at most about (retries + 1) times the socket timeout; both can be set in the URL's query.
DEFAULTS = {"socket_timeout": 2.0, "socket_connect_timeout": 1.0, "max_connections": 16}
POOL_SECONDS = 5.0
RETRIES = 1
PAUSE_SECONDS = 0.2
PORTS = {"sentinel": 26379, "cluster": 6379}

Words = tuple[Any, ...]
Info = Mapping[str, Any]


class Servers(Protocol):
    """Sends commands in pipelines; each answer is a value or the error that took its place."""

    leases_together: int
    """Of how many streams one script may see the leases: those of a cluster are spread over its nodes."""
    timeout_seconds: float
    backoff: "CountedBackoff"

    async def open(self) -> None:
        """Make sure that the servers answer."""

    async def close(self) -> None:
        """Close all connections."""

    async def exchange(self, commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
        """Send commands, and on each of the connections they go by, what waits for them to be kept well enough."""

    async def exchange_short(self, commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
        """Do the same for commands with short answers, one call at a time, by a shorter way if there is one."""

    async def info(self, *sections: str) -> list[Info]:
        """Ask every primary how it is."""

    async def ask(self, *words: Any) -> Any:
        """Send one command that any server can answer."""


def servers_of(url: str) -> Servers:
    """Choose by the URL's scheme. Raises ValueError for a URL that names no host."""
    scheme, _, kind = urlsplit(url).scheme.partition("+")
    if not kind:
        return OneServer(url)
    hosts, options = read_hosts(url, scheme, PORTS[kind])
    service = urlsplit(url).path.strip("/")
    if kind == "cluster":
        if service:
            raise ValueError(f"a Cluster's URL is {scheme}+cluster://host:port,host:port, with no path")
        return Cluster(hosts, options)
    name, _, database = service.partition("/")
    if not name:
        raise ValueError(f"a Sentinel's URL is {scheme}+sentinel://host:port,host:port/name")
    return Watched(hosts, name, options | {"db": int(database or 0)})


def read_hosts(url: str, scheme: str, default_port: int) -> tuple[list[tuple[str, int]], dict[str, Any]]:
    """Split the hosts of a URL from everything else that it says about the connections."""
    place = urlsplit(url)
    login, at, hosts = place.netloc.rpartition("@")
    addresses = [urlsplit(f"//{host}") for host in hosts.split(",")]
    if not all(address.hostname for address in addresses):
        raise ValueError(f"the URL of a store names a host:port before each comma, not {hosts!r}")
    options: dict[str, Any] = dict(parse_url(urlunsplit((scheme, f"{login}{at}host", "", place.query, ""))))
    del options["host"]
    if options.pop("connection_class", None) is SSLConnection:
        options["ssl"] = True
    return [(str(address.hostname), address.port or default_port) for address in addresses], DEFAULTS | options


class CountedBackoff(ExponentialBackoff):
    """The pause before a command is sent again, which counts how often that is."""

    def __init__(self) -> None:
        super().__init__(cap=PAUSE_SECONDS, base=PAUSE_SECONDS / 2)
        self.retries = 0

    def compute(self, failures: int) -> float:
        """Give the seconds to wait; asked for before each retry, and only then."""
        self.retries += 1
        return super().compute(failures)

    def __deepcopy__(self, _: object) -> "CountedBackoff":
        # each connection takes a copy of its own: they shall count together
        return self


def retry(backoff: CountedBackoff) -> Retry:
    """Try again once, soon."""
    return Retry(backoff, RETRIES)


class OneServer:
    """A single server, or whatever stands behind one address."""

    leases_together = 256

    def __init__(self, url: str) -> None:
        self.backoff = CountedBackoff()
        again = retry(self.backoff)
        pool = BlockingConnectionPool.from_url(url, retry=again, protocol=2, timeout=POOL_SECONDS, **DEFAULTS)
        self._use(Redis.from_pool(pool))

    def _use(self, client: Redis) -> None:
        self._client = client
        self.timeout_seconds = float(client.connection_pool.connection_kwargs["socket_timeout"])
        self._line = RedisLine(client.connection_pool, self.timeout_seconds, RETRIES, self.backoff)

    async def open(self) -> None:
        """Make sure that the server answers."""
        await self.ask("PING")

    async def close(self) -> None:
        """Close all connections."""
        await self._line.close()
        await self._client.aclose()

    async def exchange(self, commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
        """Send commands in one pipeline, and what waits for them behind."""
        pipeline = self._client.pipeline(transaction=False)
        for words in (*commands, *waits):
            pipeline.execute_command(*words)
        answers = await pipeline.execute(raise_on_error=False)
        return judge(answers[: len(commands)], answers[len(commands) :])

    async def exchange_short(self, commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
        """Do the same on a connection that is kept for it."""
        answers = await self._line.exchange((*commands, *waits))
        return judge(answers[: len(commands)], answers[len(commands) :])

    async def info(self, *sections: str) -> list[Info]:
        """Ask the server how it is."""
        return [merge([await self.ask("INFO", section) for section in sections])]

    async def ask(self, *words: Any) -> Any:
        """Send one command."""
        return await self._client.execute_command(*words)  # type: ignore[no-untyped-call]


class Watched(OneServer):
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


class KnownCommands(AsyncCommandsParser):
    """The table of commands, read once: redis-py asks the first node again after each error, and that may be dead."""

    async def initialize(self, node: ClusterNode | None = None) -> None:
        """Read the table, unless it is known."""
        if not self.commands:
            await super().initialize(node)


class Cluster:
    """The nodes of a Cluster; each stream lives on one of them."""

    leases_together = 1

    def __init__(self, hosts: list[tuple[str, int]], options: dict[str, Any]) -> None:
        nodes = [ClusterNode(host, port) for host, port in hosts]
        self.backoff = CountedBackoff()
        self._client = RedisCluster(startup_nodes=nodes, retry=retry(self.backoff), protocol=2, **options)
        self._client.commands_parser = KnownCommands()
        self.timeout_seconds = float(options["socket_timeout"])

    async def open(self) -> None:
        """Find all nodes."""
        await self._client.initialize()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def exchange(self, commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
        """Send commands in one pipeline a node, and what waits for them behind on each."""
        await self._client.initialize()  # does nothing but after an error
        nodes = self._nodes_of(commands) if waits else {}
        pipeline = self._client.pipeline()
        for words in commands:
            pipeline.execute_command(*words)
        for node in nodes.values():
            for words in waits:
                pipeline.execute_command(*words, target_nodes=node)
        # what went on to another node by a redirection, nothing here would have waited for
        answers = await pipeline.execute(raise_on_error=False, allow_redirections=not waits)
        if waits and (self._nodes_of(commands) != nodes or any(isinstance(answer, MovedError) for answer in answers)):
            await self._client.aclose()  # so that the nodes are asked anew
            raise StoreUnavailable("Redis: the stream is moving to another node")
        return judge(answers[: len(commands)], answers[len(commands) :])

    async def exchange_short(self, commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
        """Do the same: which node has a stream is for the client to know."""
        return await self.exchange(commands, waits)

    def _nodes_of(self, commands: Sequence[Words]) -> dict[str, ClusterNode]:
        nodes = (self._client.get_node_from_key(key_of(words)) for words in commands)
        return {node.name: node for node in nodes if node is not None}

    async def info(self, *sections: str) -> list[Info]:
        """Ask every primary how it is."""
        await self._client.initialize()
        nodes = self._client.get_primaries()
        return [
            merge([await self._client.execute_command("INFO", section, target_nodes=node) for section in sections])
            for node in nodes
        ]

    async def ask(self, *words: Any) -> Any:
        """Send one command to the first primary."""
        await self._client.initialize()
        return await self._client.execute_command(*words, target_nodes=self._client.get_primaries()[0])


def key_of(words: Words) -> str:
    """Give the key by which a command finds its node."""
    return str(words[3] if words[0] in ("EVAL", "EVALSHA") else words[1])


def judge(answers: list[Any], waited: Sequence[Any]) -> list[Any]:
    """Give the answers of commands that were kept well enough; the others may or may not outlive the server."""
    shortfall = next((answer for answer in waited if not is_enough(answer)), None)
    if shortfall is None:
        return answers
    reason = f"Redis: {shortfall}" if isinstance(shortfall, Exception) else f"Redis: in time only {shortfall} kept it"
    return [answer if isinstance(answer, Exception) else StoreUnavailable(reason) for answer in answers]


def is_enough(kept_by: Any) -> bool:
    """Tell whether WAIT, or WAITAOF with its [local, replicas], counted at least one."""
    if isinstance(kept_by, Exception):
        return False
    return int(kept_by[0] if isinstance(kept_by, list) else kept_by) >= 1


def merge(infos: Iterable[Any]) -> Info:
    """Join what INFO said of several sections."""
    merged: dict[str, Any] = {}
    for info in infos:
        merged.update(info)
    return merged
