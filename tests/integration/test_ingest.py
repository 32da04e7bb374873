"""Records of many streams, sent to services that are killed, or that share a Redis: each stream is as if sent alone."""

import asyncio
import os
import random
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.storage.memory import MemoryStore
from app.storage.sqlite import SqliteStore
from tests.app.harness import Service, blobs
from tests.integration.process import ServiceProcess
from tests.servers import RedisServer

KILLS = int(os.environ.get("ITAN_TEST_KILLS", "6"))
STREAMS = [f"s{number}" for number in range(5)]
BATCHES, SIZE = 12, 30
SAMPLES = {stream: blobs(BATCHES * SIZE, 3, seed) for seed, stream in enumerate(STREAMS)}


def batch(number: int, streams: list[str] = STREAMS) -> list[dict[str, Any]]:
    """Give the records of one request, in turn."""
    return [
        {"stream": stream, "sample": SAMPLES[stream][i].tolist(), "id": f"{stream}-{i}"}
        for i in range(number * SIZE, (number + 1) * SIZE)
        for stream in streams
    ]


async def expected_states() -> dict[str, bytes]:
    """Give the state of each stream as /observe alone makes it."""
    async with Service() as service:
        for stream, X in SAMPLES.items():
            for i in range(BATCHES):
                part = range(i * SIZE, (i + 1) * SIZE)
                await service.observe(X[part], stream, ids=[f"{stream}-{k}" for k in part])
        return {stream: await service.export(stream) for stream in STREAMS}


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_after_each_crash_it_goes_on_as_one_that_never_ended(store, tmp_path):
    kept = MemoryStore()
    for number in range(BATCHES):
        async with Service(SqliteStore(tmp_path / "itan.db") if store == "sqlite" else kept) as service:
            answer = await service.accepted("POST", "/ingest", json=batch(number))
            assert answer["seq"] == [i + 1 for i in range(number * SIZE, (number + 1) * SIZE) for _ in STREAMS]
            await service.crash()
    async with Service(SqliteStore(tmp_path / "itan.db") if store == "sqlite" else kept) as service:
        states = {stream: await service.export(stream) for stream in STREAMS}
        assert await service.metric("itan_replay_mismatches_total", reason="other") == 0
    assert states == await expected_states()


class Agent:
    """Sends its batches in order, each until all of it is taken; it reads only the status, as agents do."""

    def __init__(self, urls: list[str], streams: list[str], dice: random.Random) -> None:
        self.urls, self.streams, self.dice = urls, streams, dice
        self.repeats = 0

    async def send(self) -> None:
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
            for number in range(BATCHES):
                while await self._status(http, number) != 200:
                    self.repeats += 1
                    await asyncio.sleep(0.02)

    async def _status(self, http: httpx2.AsyncClient, number: int) -> int:
        url = self.dice.choice(self.urls)
        try:
            answer = await http.post(f"{url}/ingest?retry=true", json=batch(number, self.streams))
        except httpx2.TransportError:
            return 0
        assert answer.status_code in (200, 503), answer.text
        return answer.status_code


async def states_at(url: str) -> dict[str, bytes]:
    async with httpx2.AsyncClient(trust_env=False, timeout=30, base_url=url) as http:
        metrics = (await http.get("/metrics")).text
        assert 'itan_replay_mismatches_total{reason="other"} 0.0' in metrics
        found = {}
        for stream in STREAMS:
            answer = await http.get(f"/streams/{stream}/export")
            while answer.status_code == 503:  # another worker has it
                await asyncio.sleep(0.2)
                answer = await http.get(f"/streams/{stream}/export")
            found[stream] = answer.content
    return found


@pytest.mark.crash
@pytest.mark.servers
@pytest.mark.parametrize("store", ["sqlite", "valkey"])
async def test_what_is_repeated_after_kills_counts_once(store, tmp_path, request):
    seed = int(os.environ.get("ITAN_TEST_SEED", random.randrange(10**6)))
    print("ITAN_TEST_SEED", seed)
    dice = random.Random(seed)
    url = f"sqlite:///{tmp_path}/itan.db" if store == "sqlite" else request.getfixturevalue("redis_server").url
    with ServiceProcess(url, tmp_path) as service:
        agents = [Agent([service.url], STREAMS[:2], dice), Agent([service.url], STREAMS[2:], dice)]
        sending = [asyncio.create_task(agent.send()) for agent in agents]
        for _ in range(KILLS):
            await asyncio.sleep(dice.uniform(0.02, 0.2))
            service.kill()
            await asyncio.to_thread(service.start)
        await asyncio.gather(*sending)
        states = await states_at(service.url)
        assert "Traceback" not in service.said()
    assert sum(agent.repeats for agent in agents) > 0
    await assert_same(states)


@pytest.mark.servers
async def test_workers_that_share_the_streams_keep_them_whole(redis_server: RedisServer, tmp_path: Path) -> None:
    dice = random.Random(7)
    settings = {"lease_seconds": 1.0, "handover_seconds": 0.1}
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    with (
        ServiceProcess(redis_server.url, folders[0], **settings) as a,
        ServiceProcess(redis_server.url, folders[1], **settings) as b,
    ):
        agents = [Agent([a.url, b.url], STREAMS[:2], dice), Agent([b.url], STREAMS[2:], dice)]
        await asyncio.gather(*(agent.send() for agent in agents))
        states = await states_at(b.url)
        assert "Traceback" not in a.said() + b.said()
    assert agents[0].repeats > 0
    await assert_same(states)


async def metric(url: str, series: str) -> float:
    async with httpx2.AsyncClient(trust_env=False, base_url=url) as http:
        lines = (await http.get("/metrics")).text.splitlines()
    return float(next(line for line in lines if line.startswith(f"{series} ")).rsplit(" ", 1)[1])


async def forwarded(services: tuple[ServiceProcess, ...]) -> float:
    counts = [await metric(service.url, 'itan_forwarded_records_total{outcome="answered"}') for service in services]
    return sum(counts)


@pytest.mark.crash
@pytest.mark.servers
async def test_workers_that_forward_move_no_stream_but_those_of_a_killed_one(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    dice = random.Random(7)
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    with (
        ServiceProcess(redis_server.url, folders[0], forwards=True) as a,
        ServiceProcess(redis_server.url, folders[1], forwards=True) as b,
    ):
        # each sends all of its streams to either worker
        agents = [Agent([a.url, b.url], STREAMS[:2], dice), Agent([b.url, a.url], STREAMS[2:], dice)]
        sending = [asyncio.create_task(agent.send()) for agent in agents]
        while await forwarded((a, b)) == 0 and not all(task.done() for task in sending):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        assert sum(agent.repeats for agent in agents) == 0
        for service in (a, b):
            assert await metric(service.url, 'itan_lease_changes_total{change="handed_over"}') == 0
        assert await forwarded((a, b)) > 0
        a.kill()
        await asyncio.sleep(0.3)
        await asyncio.to_thread(a.start)
        await asyncio.gather(*sending)
        states = await states_at(b.url)
        assert "Traceback" not in a.said() + b.said()
    await assert_same(states)


async def assert_same(states: dict[str, bytes]) -> None:
    """Hold the states to what /observe makes of the same samples: the next answers are the same."""
    expected = await expected_states()
    async with Service() as service:
        headers = {"Content-Type": "application/octet-stream"}
        for stream in STREAMS:
            said = []
            for kind, body in (("is", states[stream]), ("should", expected[stream])):
                name = f"{stream}-{kind}"
                await service.accepted("PUT", f"/streams/{name}/import", content=body, headers=headers)
                described = await service.accepted("GET", f"/streams/{name}")
                answer = await service.observe(blobs(50, 3, 99), name)
                said.append((described["n_seen"], described["threshold"], answer["score"], answer["threshold"]))
            assert said[0] == said[1]
