"""How durably a Redis keeps what it has accepted, and how to wait for that."""

from collections.abc import Iterator, Sequence
from itertools import chain

from redis.exceptions import ResponseError

from app.storage.errors import StoreUnavailable
from app.storage.interface import Durability
from app.storage.redis.servers import Info, Servers, Words
from app.storage.usage import Usage


async def waits_for(servers: Servers, durability: Durability) -> list[Words]:
    """Give the commands that wait until earlier writes are kept as promised."""
    # shorter than the timeout of the connection
    milliseconds = round(servers.timeout_seconds * 500)
    waits: list[Words] = []
    if durability is not Durability.PROCESS and await knows_waitaof(servers):
        waits.append(("WAITAOF", 1, 0, milliseconds))
    if durability is Durability.REPLICAS:
        waits.append(("WAIT", 1, milliseconds))
    return waits


async def find_faults(servers: Servers, durability: Durability) -> list[str]:
    """Say how the set-up of the servers breaks what is promised."""
    infos = await servers.info("memory", "persistence", "replication")
    faults = list(chain.from_iterable(faults_of(info, durability) for info in infos))
    if durability is not Durability.PROCESS and not await fsyncs_first(servers):
        faults.append(
            f"Redis may lose the last second in a power loss, though ITAN_DURABILITY={durability}: "
            "set appendfsync always, or use a server that has WAITAOF (7.2 or later)"
        )
    return list(dict.fromkeys(faults))


def faults_of(info: Info, durability: Durability) -> Iterator[str]:
    """Say what is wrong with one primary."""
    policy = info.get("maxmemory_policy", "noeviction")
    if policy.startswith("allkeys"):
        yield f"Redis may evict streams when its memory is full (maxmemory-policy {policy}): set noeviction"
    yield from usage_of(info).warnings("Redis' maxmemory")
    if not info.get("aof_enabled"):
        yield "Redis keeps no append-only file: acknowledged events do not survive its restart (set appendonly yes)"
    if info.get("aof_last_write_status", "ok") != "ok":
        yield "Redis cannot write its append-only file"
    if info.get("role", "master") != "master":
        yield "Redis is a replica: it cannot be written to"
    if durability is Durability.REPLICAS and not info.get("connected_slaves"):
        yield "Redis has no replica now: with ITAN_DURABILITY=replicas nothing is acknowledged"


def usage_of(info: Info) -> Usage:
    """Measure a primary against its maxmemory."""
    return Usage(int(info.get("used_memory", 0)), int(info.get("maxmemory", 0)))


def fullest(infos: Sequence[Info]) -> Usage:
    """Give the usage of the fullest primary."""
    return max(map(usage_of, infos), key=lambda usage: (usage.share, usage.used_bytes), default=Usage())


async def fsyncs_first(servers: Servers) -> bool:
    """Tell whether a write can be on disk before it is acknowledged."""
    return await knows_waitaof(servers) or await appendfsync(servers) == b"always"


async def knows_waitaof(servers: Servers) -> bool:
    """Tell whether the servers know WAITAOF, which came with version 7.2."""
    try:
        await servers.ask("WAITAOF", 0, 0, 1)
    except ResponseError as error:
        if "replica" in str(error):
            raise StoreUnavailable(f"Redis: {error}") from error
        return False
    return True


async def appendfsync(servers: Servers) -> bytes | None:
    """Give the setting; None where CONFIG GET is not allowed."""
    try:
        answer = await servers.ask("CONFIG", "GET", "appendfsync")
    except ResponseError:
        return None
    return dict(zip(answer[::2], answer[1::2], strict=True)).get(b"appendfsync") if isinstance(answer, list) else None
