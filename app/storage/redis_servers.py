"""How the servers behind a URL are reached: one server, the primary that Sentinels name, or the nodes of a Cluster."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode, PipelineCommand
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import ExponentialBackoff
from redis.exceptions import ConnectionError as DisconnectedError
from redis.exceptions import MovedError, RedisClusterException
from redis.exceptions import TimeoutError as SilentError

from app.storage.base import StoreError, StoreUnavailable
from app.storage.redis_line import RedisLine

# A verb waits for at most about (retries + 1) times the socket timeout; both can be set in the URL's query.
DEFAULTS = {"socket_timeout": 2.0, "socket_connect_timeout": 1.0, "max_connections": 16}
POOL_SECONDS = 5.0
RETRIES = 1
PAUSE_SECONDS = 0.2
# What a node cannot be asked, and what it is not the one to ask for.
UNREACHED = (DisconnectedError, SilentError, OSError)
ELSEWHERE = (*UNREACHED, MovedError)
PORTS = {"sentinel": 26379, "cluster": 6379}
# What one server may turn out to be, though the URL does not say so.
MODES = {
    "sentinel": "a Sentinel: its URL is redis+sentinel://host:port/name",
    "cluster": "a node of a Cluster: its URL is redis+cluster://host:port",
}

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
    scheme, _, kind = url.partition("://")[0].lower().partition("+")
    if not kind:
        return OneServer(url)
    hosts, options = read_hosts(url, scheme, PORTS[kind])
    service = urlsplit(split_hosts(url)[1]).path.strip("/")
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
    hosts, rest = split_hosts(url)
    addresses = [urlsplit(f"//{host}") for host in hosts.split(",")]
    if not all(address.hostname for address in addresses):
        raise ValueError(f"the URL of a store names a host:port before each comma, not {hosts!r}")
    place = urlsplit(rest)
    options: dict[str, Any] = dict(parse_url(urlunsplit((scheme, place.netloc, "", place.query, ""))))
    del options["host"]
    if options.pop("connection_class", None) is SSLConnection:
        options["ssl"] = True
    return [(str(address.hostname), address.port or default_port) for address in addresses], DEFAULTS | options


def split_hosts(url: str) -> tuple[str, str]:
    """Give the hosts of a URL, and the URL with one name in their place: urlsplit refuses [::1] behind a comma."""
    start = url.index("://") + len("://")
    end = next((at for at, letter in enumerate(url) if at >= start and letter in "/?#"), len(url))
    start = max(start, url.rfind("@", start, end) + 1)
    return url[start:end], f"{url[:start]}host{url[end:]}"


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
        """Make sure that the server answers, and that it is of the kind that the URL says."""
        await self.ask("PING")
        about = await self.ask("INFO", "server")
        mode = about.get("redis_mode", about.get("server_mode"))  # Redis', Valkey's
        if mode in MODES:
            raise StoreError(f"Redis: this is {MODES[mode]}")

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


class Cluster:
    """The nodes of a Cluster; each stream lives on one of them.

    redis-py knows which, but its own pipelines fail on all nodes when one of them does.
    """

    leases_together = 1

    def __init__(self, hosts: list[tuple[str, int]], options: dict[str, Any]) -> None:
        self.backoff = CountedBackoff()
        self.timeout_seconds = float(options["socket_timeout"])
        self._client = RedisCluster(startup_nodes=[ClusterNode(*host) for host in hosts], protocol=2, **options)
        self._nodes = self._client.nodes_manager

    async def open(self) -> None:
        """Find all nodes, by one that answers, and make sure that one can serve."""
        await self._nodes.initialize()
        await self.ask("PING")

    async def close(self) -> None:
        """Close all connections."""
        await self._nodes.aclose()
        await self._nodes.aclose("startup_nodes")

    async def exchange(self, commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
        """Send commands in one pipeline a node, and what waits for them behind on each; again what found no node."""
        remaining = dict(enumerate(commands))
        answers = await self._exchange_once(remaining, waits)
        for failures in range(1, RETRIES + 1):
            remaining = {place: commands[place] for place, answer in answers.items() if isinstance(answer, ELSEWHERE)}
            if remaining:
                await asyncio.sleep(self.backoff.compute(failures))
                answers |= await self._exchange_once(remaining, waits)
        return [answers[place] for place in range(len(commands))]

    async def exchange_short(self, commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
        """Do the same: which node has a stream is for the client to know."""
        return await self.exchange(commands, waits)

    async def _exchange_once(self, commands: Mapping[int, Words], waits: Sequence[Words]) -> dict[int, Any]:
        groups: dict[ClusterNode, dict[int, Words]] = {}
        for place, words in commands.items():
            node = self._nodes.get_node_from_slot(self._client.keyslot(key_of(words)))
            groups.setdefault(node, {})[place] = words
        parts = await asyncio.gather(*(self._send(node, [*group.values()], waits) for node, group in groups.items()))
        return dict(zip(chain(*groups.values()), chain(*parts), strict=True))

    async def _send(self, node: ClusterNode, commands: Sequence[Words], waits: Sequence[Words] = ()) -> list[Any]:
        """Send commands to a node; that it cannot be reached is an answer too."""
        pipeline = [PipelineCommand(place, *words) for place, words in enumerate((*commands, *waits))]
        try:
            await node.execute_pipeline(pipeline)
            answers = [command.result for command in pipeline]
        except UNREACHED as error:
            answers = [error] * len(pipeline)
        await self._follow(node, answers)
        return judge(answers[: len(commands)], answers[len(commands) :])

    async def _follow(self, node: ClusterNode, answers: Sequence[Any]) -> None:
        """Look for the nodes anew when the answers of one tell that it, or a stream, is gone."""
        if any(isinstance(answer, ELSEWHERE) for answer in answers):
            with suppress(RedisClusterException):  # none answers: those that are known will be tried
                await self._nodes.initialize(last_failed_node_name=node.name)
        for answer in answers:
            if isinstance(answer, MovedError):
                await self._nodes.move_slot(answer)

    async def info(self, *sections: str) -> list[Info]:
        """Ask every primary how it is."""
        questions = [("INFO", section) for section in sections]
        return [merge(accept(await self._send(node, questions))) for node in self._client.get_primaries()]

    async def ask(self, *words: Any) -> Any:
        """Send one command to the first primary that can be reached."""
        answers: list[Any] = []
        for node in self._client.get_primaries():
            answers = await self._send(node, [words])
            if not isinstance(answers[0], UNREACHED):
                break
        return accept(answers)[0]


def accept(answers: list[Any]) -> list[Any]:
    """Give answers, or raise the first error among them."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers


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
