"""A real service under load is killed again and again; what it acknowledged is there, once, and nothing else is."""

import asyncio
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from itan_client import Client
from tests.integration.process import ServiceProcess
from tests.integration.relay import Relay
from tests.integration.traffic import Sender, count_answers, end, prove, question, wait_a_moment
from tests.servers import RedisServer

KILLS = int(os.environ.get("ITAN_TEST_KILLS", "6"))
CONFIGS: dict[str, dict[str, object]] = {
    "a": {"n_features": 3},
    "b": {"n_features": 3, "half_life_samples": 400},
    "c": {"n_features": 3, "half_life_seconds": 20, "drift_relative": True},
    "d": {
        "features": [{"name": "x"}, {"name": "y"}, {"name": "z", "role": "context"}],
        "calendar": {"periods": ["day", 3600], "timezone": "Europe/Berlin"},
    },
}
BEGIN = 1_700_000_000
STREAMS, CLIENTS = tuple(CONFIGS), 2
MOST_ANSWERS, MOST_SECONDS = 25, 0.05


@pytest.fixture(params=["sqlite", "valkey"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that outlives the service."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/itan.db"
    return str(request.getfixturevalue("redis_server").url)


class LabellingSender(Sender):
    """The first of a stream begins with so many labelled normals that they have a density of their own."""

    @property
    def begins_with(self) -> int:
        return 300 if self.name.endswith("0") else 10

    def next_request(self) -> tuple[str, dict[str, Any]]:
        """Send times where there is a calendar; some are not known."""
        path, body = super().next_request()
        if path == "/observe" and "calendar" in CONFIGS[self.stream]:
            numbers = [int(name.rpartition("-")[2]) for name in body["ids"]]
            body["timestamps"] = [BEGIN + 600 * number if number % 9 else None for number in numbers]
        return path, body


class Killer:
    """Ends a service between two instructions of it: at a random moment, or just when it has answered."""

    def __init__(self, service: ServiceProcess, senders: list[Sender], dice: random.Random) -> None:
        self.service, self.senders, self.dice = service, senders, dice
        self.is_dead = asyncio.Event()

    def kill(self) -> None:
        """Kill at once, with nothing in between; the senders wait from then on."""
        self.service.kill()
        for sender in self.senders:
            sender.is_up.clear()
        self.is_dead.set()

    def at_an_answer(self, kill: Callable[[], None]) -> None:
        """Have it killed when the next answer has come."""
        for sender in self.senders:
            sender.on_answer = kill

    async def strike(
        self, tasks: "list[asyncio.Task[None]]", arm: Callable[[Callable[[], None]], None] | None = None
    ) -> None:
        """Kill after some answers, at a random moment or when what is armed goes off, and start again."""
        wanted = count_answers(self.senders) + self.dice.randint(0, MOST_ANSWERS)
        while count_answers(self.senders) < wanted:
            await wait_a_moment(tasks, 0.01)
        if arm is not None:
            arm(self.kill)
            while not self.is_dead.is_set():
                await wait_a_moment(tasks, 0.005)
        else:
            await wait_a_moment(tasks, self.dice.uniform(0, MOST_SECONDS))
            self.kill()
        self.is_dead.clear()
        self.at_an_answer(lambda: None)
        await asyncio.to_thread(self.service.start)
        for sender in self.senders:
            sender.is_up.set()


async def test_kill_9_between_the_append_and_the_answer_counts_everything_once(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    seed = int(os.environ.get("ITAN_TEST_SEED", random.randrange(10**6)))
    print("ITAN_TEST_SEED", seed)
    async with Relay(redis_server.port) as relay:
        service = ServiceProcess(relay.url, tmp_path, snapshot_every_seconds=0.2)
        await asyncio.to_thread(service.start)
        await asyncio.to_thread(create, service.url)
        senders = [LabellingSender(f"{stream}0", stream, seed, [service.url], "stream_moved") for stream in STREAMS]
        tasks = [asyncio.create_task(sender.send()) for sender in senders]
        killer = Killer(service, senders, random.Random(seed))
        for _ in range(max(2, KILLS // 3)):
            await killer.strike(tasks, arm=lambda kill: setattr(relay, "on_append", kill))
            relay.on_append = lambda: None
        await end(tasks, senders)
        witnesses = await question([service.url], senders)
        service.kill()
    assert sum(sender.repeats for sender in senders) > 0
    await prove(redis_server.url, witnesses, senders)


def create(url: str) -> None:
    """Make streams of several configs."""
    with Client(url) as client:
        for stream, config in CONFIGS.items():
            client.create(stream, config)


@pytest.mark.timeout(300 + 20 * KILLS)
async def test_kill_9_at_any_moment_loses_nothing_and_doubles_nothing(store_url: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("ITAN_TEST_SEED", random.randrange(10**6)))
    print("ITAN_TEST_SEED", seed)
    settings = {"snapshot_every_seconds": 0.2, "label_horizon_samples": 10**6}
    with ServiceProcess(store_url, tmp_path, **settings) as service:
        await asyncio.to_thread(create, service.url)
        # what the killed one had sent may reach the store after the next one has read it
        senders = [
            LabellingSender(f"{stream}{number}", stream, seed, [service.url], "stream_moved")
            for stream in STREAMS
            for number in range(CLIENTS)
        ]
        tasks = [asyncio.create_task(sender.send()) for sender in senders]
        killer = Killer(service, senders, random.Random(seed))
        for number in range(KILLS):
            await killer.strike(tasks, killer.at_an_answer if number % 2 else None)
        await end(tasks, senders)
        witnesses = await question([service.url], senders)
        assert service.stop() == 0
        assert "Traceback" not in service.said()
    await prove(store_url, witnesses, senders)
    for stream in STREAMS:
        said = [label for sender in senders if sender.stream == stream for label in sender.labels.values()]
        print(stream, {label: said.count(label) for label in (True, False, None)})
    counts = [len(sender.answered) for sender in senders]
    print("batches", counts, "labels", [len(sender.labels) for sender in senders], "repeats", senders[0].repeats)
    assert sum(counts) > KILLS
