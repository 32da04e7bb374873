"""A primary of Redis dies or hangs: a replica takes its place, or its streams wait for it; nothing told is lost."""

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.integration.process import ServiceProcess
from tests.integration.traffic import Sender, end, prove, question, wait_for_answers
from tests.processes import wait_until
from tests.servers import ClusterServers, RedisServer, WatchedServers, ask, find_valkey

STREAMS = [f"s{number}" for number in range(int(os.environ.get("ITAN_TEST_STREAMS", "6")))]
AOF = ("--appendonly", "yes")
MAY_PASS = ("store_unavailable", "stream_moved")

SERVERS: dict[str, Callable[[Path], WatchedServers | ClusterServers]] = {
    # nothing is acknowledged before the new primary has a replica too: the second one, or the killed server come back
    "sentinel": lambda folder: WatchedServers(find_valkey(), folder, *AOF, replicas=2),
    "cluster": lambda folder: ClusterServers(find_valkey(), folder, *AOF, replicas=1),
}


@pytest.fixture(params=SERVERS)
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WatchedServers | ClusterServers]:
    running = SERVERS[request.param](tmp_path)
    running.start()
    yield running
    running.kill()


def fail_over(servers: WatchedServers | ClusterServers) -> None:
    """Kill a primary, and wait until a replica has taken its place."""
    if isinstance(servers, WatchedServers):
        servers.primary.kill()
        wait_until(lambda: any(role_of(replica) == b"master" for replica in servers.replicas))
        return
    victim, replica = servers.servers[0], servers.servers[3]
    victim.kill()
    wait_until(lambda: role_of(replica) == b"master")
    victim.start()


def role_of(server: RedisServer) -> object:
    return ask(server, "ROLE")[0]


class PacedSender(Sender):
    pause_seconds = 0.05


@asynccontextmanager
async def sending(url: str, folder: Path, **settings: object) -> AsyncIterator[tuple[list[asyncio.Task], list[Sender]]]:
    """Send to a service while the block lasts; then prove that what was acknowledged is there, once."""
    seed = int(os.environ.get("ITAN_TEST_SEED", random.randrange(10**6)))
    print("ITAN_TEST_SEED", seed)
    with ServiceProcess(url, folder, snapshot_every_seconds=1.0, **settings) as service:
        senders: list[Sender] = [PacedSender(stream, stream, seed, [service.url], *MAY_PASS) for stream in STREAMS]
        tasks = [asyncio.create_task(sender.send()) for sender in senders]
        await wait_for_answers(tasks, senders, 3)
        yield tasks, senders
        await end(tasks, senders)
        witnesses = await question([service.url], senders)
        assert "Traceback" not in service.said()
    await prove(url, witnesses, senders)


async def test_nothing_acknowledged_is_lost(servers: WatchedServers | ClusterServers, tmp_path: Path) -> None:
    async with sending(servers.url + "?socket_timeout=1", tmp_path, durability="replicas") as (tasks, senders):
        killed = time.monotonic()
        await asyncio.to_thread(fail_over, servers)
        print(f"a replica has taken over {time.monotonic() - killed:.1f} s after the death")
        await wait_for_answers(tasks, senders, 3)
        print(f"all streams are served again {time.monotonic() - killed:.1f} s after the death")
        assert "store_unavailable" in set.union(*(sender.refusals for sender in senders))


@pytest.mark.parametrize("servers", ["sentinel"], indirect=True)
async def test_a_primary_that_hung_and_comes_back_is_not_believed(servers: WatchedServers, tmp_path: Path) -> None:
    async with sending(servers.url + "?socket_timeout=1", tmp_path, durability="replicas") as (tasks, senders):
        servers.primary.freeze()
        await asyncio.to_thread(wait_until, lambda: any(role_of(replica) == b"master" for replica in servers.replicas))
        await wait_for_answers(tasks, senders, 3)
        servers.primary.thaw()  # it takes itself for the primary until Sentinel tells it
        await wait_for_answers(tasks, senders, 3)
        await asyncio.to_thread(wait_until, lambda: role_of(servers.primary) == b"slave", 60)
        await wait_for_answers(tasks, senders, 3)
