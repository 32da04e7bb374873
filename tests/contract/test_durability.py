"""What ITAN_DURABILITY promises is waited for, or nothing is acknowledged."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.storage import Durability, Entry, Position, Snapshot, StoreUnavailable, open_store
from tests.servers import ClusterServers, RedisServer, WatchedServers, find_redis, find_valkey

START = Snapshot(Position(0, 0), b"start")
FSYNC, REPLICAS = Durability.FSYNC, Durability.REPLICAS
AOF = ("--appendonly", "yes")
SOON = "?socket_timeout=1"


def one(seq: int) -> Entry:
    return Entry(Position(seq, 0), b"body", seq, (f"id {seq}",))


@pytest.fixture
def serve(tmp_path: Path) -> Iterator:
    """Start servers that end with the test."""
    started: list = []

    def start(servers):
        started.append(servers)
        servers.start()
        return servers

    yield start
    for servers in started:
        servers.kill()


async def warnings_of(url: str, durability: Durability) -> str:
    store = open_store(url, durability)
    await store.open()
    warnings = await store.check()
    await store.close()
    return "; ".join(warnings)


@pytest.mark.parametrize(("durability", "level"), [(Durability.PROCESS, 1), (FSYNC, 2)])
async def test_sqlite_is_synchronous_as_promised(tmp_path, durability, level):
    store = open_store(f"sqlite:///{tmp_path}/itan.db", durability)
    await store.open()

    def read(connection: sqlite3.Connection) -> int:
        return connection.execute("PRAGMA synchronous").fetchone()[0]

    assert await store.writer.run(read) == level
    await store.close()


@pytest.mark.parametrize(
    ("url", "durability"), [("memory://", FSYNC), ("memory://", REPLICAS), ("sqlite:///itan.db", REPLICAS)]
)
def test_what_a_store_can_never_keep_is_refused(url, durability):
    with pytest.raises(ValueError, match=f"ITAN_DURABILITY={durability}"):
        open_store(url, durability)


async def test_fsync_is_waited_for(serve, tmp_path):
    server = serve(RedisServer(find_valkey(), tmp_path, *AOF))
    assert await warnings_of(server.url, FSYNC) == ""
    store = open_store(server.url, FSYNC)
    await store.open()
    token = await store.acquire("s", "a", 60)
    await store.create("s", START, token)
    await store.append("s", Position(0, 0), one(1), {}, token)
    with server.admin() as admin:
        assert admin.info("commandstats")["cmdstat_waitaof"]["calls"] >= 3
        admin.config_set("appendonly", "no")
        with pytest.raises(StoreUnavailable, match="WAITAOF"):
            await store.append("s", Position(1, 0), one(2), {}, token)
        with pytest.raises(StoreUnavailable, match="WAITAOF"):
            await store.acquire("s", "a", 60)
        admin.config_set("appendonly", "yes")
    assert await store.acquire("s", "a", 60) > token
    await store.close()


async def test_an_old_server_is_told_to_fsync_always(serve, tmp_path):
    server = serve(RedisServer(find_redis(), tmp_path, *AOF))
    with server.admin() as admin:
        if "cmdstat_waitaof" in admin.info("commandstats") or knows_waitaof(admin):
            assert await warnings_of(server.url, FSYNC) == ""
            return
        assert "appendfsync always" in await warnings_of(server.url, FSYNC)
        assert await warnings_of(server.url, Durability.PROCESS) == ""
        admin.config_set("appendfsync", "always")
    assert await warnings_of(server.url, FSYNC) == ""


def knows_waitaof(admin) -> bool:
    return tuple(int(part) for part in admin.info("server")["redis_version"].split(".")[:2]) >= (7, 2)


@pytest.mark.parametrize("servers", [WatchedServers, ClusterServers])
async def test_a_replica_is_waited_for(serve, tmp_path, servers):
    running = serve(servers(find_valkey(), tmp_path, *AOF, replicas=1))
    replica = running.replicas[0] if servers is WatchedServers else running.servers[3]
    assert await warnings_of(running.url, REPLICAS) == ""
    store = open_store(running.url + SOON, REPLICAS)
    await store.open()
    names = [f"s{number}" for number in range(6 if servers is ClusterServers else 1)]  # on every node
    for name in names:
        await store.create(name, START)
        await store.append(name, Position(0, 0), one(1))
    replica.kill()
    refused = []
    for name in names:
        try:
            await store.append(name, Position(1, 0), one(2))
        except StoreUnavailable:
            refused.append(name)
            with pytest.raises(StoreUnavailable, match="kept it"):
                await store.acquire(name, "a", 60)  # which would otherwise vouch for what it finds
    assert refused
    assert servers is ClusterServers or refused == names
    assert "no replica" in await warnings_of(running.url, REPLICAS)
    await store.close()


async def test_a_repeated_change_is_waited_for_like_the_first(serve, tmp_path, monkeypatch):
    class Mark:
        hex = "the same call, sent again"

    monkeypatch.setattr("app.storage.redis.store.uuid4", Mark)
    running = serve(WatchedServers(find_valkey(), tmp_path, *AOF, replicas=1))
    store = open_store(running.url + SOON, REPLICAS)
    await store.open()
    for stream in ("appended", "replaced", "deleted"):
        await store.create(stream, START)
    changes = [
        lambda: store.create("created", START),
        lambda: store.append("appended", Position(0, 0), one(1), {}, 0),
        lambda: store.replace("replaced", Position(0, 0), Snapshot(Position(0, 1), b"newer"), 0),
        lambda: store.delete("deleted", 0),
    ]
    running.replicas[0].freeze()  # it stays connected
    for _ in range(2):
        said = await asyncio.gather(*(change() for change in changes), return_exceptions=True)
        assert all(isinstance(error, StoreUnavailable) and "kept it" in str(error) for error in said), said
        with running.primary.admin() as admin:  # a new connection has written nothing yet
            admin.client_kill_filter(_type="normal", skipme=True)
    running.replicas[0].thaw()
    await asyncio.gather(*(change() for change in changes))
    await store.close()
