"""A real service under load is killed again and again; what it acknowledged is there, once, and nothing else is."""

import asyncio
import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from app.metrics import MISMATCHES
from app.storage import open_store
from app.storage.base import Entry, Position
from app.streams.events import BatchEvent, read_event, read_records
from core import Detector, DetectorConfig
from core.snapshot import decode
from tests.app.harness import blobs
from tests.integration.process import ServiceProcess
from tests.servers import PROGRAMS, RedisServer

KILLS = int(os.environ.get("ITAN_TEST_KILLS", "8"))
STREAMS, CLIENTS = ("a", "b", "c"), 2
MOST_ANSWERS, MOST_SECONDS = 25, 0.05


@pytest.fixture(params=["sqlite", "valkey"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store that outlives the service."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/itan.db"
        return
    server = RedisServer(PROGRAMS[request.param](), tmp_path)
    server.start()
    yield server.url
    server.kill()


class Sender:
    """A client that sends batches and labels, each until it is answered, with the same ids as before."""

    def __init__(self, name: str, stream: str, seed: int) -> None:
        self.name, self.stream = name, stream
        self.random = random.Random(f"{seed} {name}")
        self.numbers = itertools.count()
        self.X = blobs(4000, 3, seed=seed % 1000 + ord(name[-1]))
        self.answered: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.labels: dict[str, bool] = {}
        self.answers = self.repeats = 0

    def next_request(self) -> tuple[str, dict[str, Any]]:
        """Think of something to send: a batch, one in ten of them a big one, or labels of samples answered before."""
        if self.answered and self.random.random() < 0.35:
            return "/feedback", {"labels": self.some_labels()}
        size = self.random.choice([self.random.randint(1, 40)] * 9 + [300])
        ids = [f"{self.name}-{next(self.numbers)}" for _ in range(size)]
        rows = [self.X[int(name.rpartition("-")[2]) % len(self.X)].tolist() for name in ids]
        return "/observe", {"samples": rows, "ids": ids}

    def some_labels(self) -> list[dict[str, Any]]:
        body, _ = self.random.choice(self.answered)
        chosen = self.random.sample(body["ids"], min(len(body["ids"]), self.random.randint(1, 9)))
        return [{"id": name, "anomaly": self.random.random() < 0.3} for name in chosen]

    async def send(self, url: str, is_up: asyncio.Event, is_over: asyncio.Event) -> None:
        """Go on until it is over and the last request is answered."""
        while not is_over.is_set():
            path, body = self.next_request()
            answer = await self.insist(f"{url}{path}?stream={self.stream}", body, is_up)
            if path == "/observe":
                self.answered.append((body, answer))
            else:
                assert set(answer["outcome"]) <= {"applied", "duplicate", "revised"}
                self.labels.update((label["id"], label["anomaly"]) for label in body["labels"])

    async def insist(self, url: str, body: dict[str, Any], is_up: asyncio.Event) -> dict[str, Any]:
        """Send until there is an answer."""
        while True:
            await is_up.wait()
            try:
                async with httpx2.AsyncClient(trust_env=False, timeout=30) as client:
                    answer = await client.post(url, json=body)
            except httpx2.TransportError:
                self.repeats += 1
                await asyncio.sleep(0)
                continue
            if answer.status_code == 200:
                self.answers += 1
                return answer.json()
            # what the killed one had sent may reach the store after the next one has read it
            assert (answer.status_code, answer.json()["code"]) == (503, "stream_moved"), answer.text


async def live_dangerously(service: ServiceProcess, senders: list[Sender], dice: random.Random) -> None:
    """Kill the service at random moments while all send."""
    is_up, is_over = asyncio.Event(), asyncio.Event()
    tasks = [asyncio.create_task(sender.send(service.url, is_up, is_over)) for sender in senders]
    for _ in range(KILLS):
        is_up.set()
        wanted = count_answers(senders) + dice.randint(0, MOST_ANSWERS)
        while count_answers(senders) < wanted:
            await wait_a_moment(tasks, 0.01)
        await wait_a_moment(tasks, dice.uniform(0, MOST_SECONDS))
        is_up.clear()
        await asyncio.to_thread(service.kill)
        await asyncio.to_thread(service.start)
    is_over.set()
    is_up.set()
    await asyncio.gather(*tasks)


def count_answers(senders: list[Sender]) -> int:
    return sum(sender.answers for sender in senders)


async def wait_a_moment(tasks: list[asyncio.Task[None]], seconds: float) -> None:
    """Let the senders go on; what one of them finds wrong ends the test."""
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()


async def read_log(url: str, stream: str) -> list[Entry]:
    """Read a stream's whole log."""
    store = open_store(url)
    await store.open()
    found: list[Entry] = []
    while page := await store.entries(stream, found[-1].position if found else Position(0, 0), 100):
        found += page
    await store.close()
    return found


class Reading:
    """A detector fed with a log, event by event, and what the log says of each sample."""

    def __init__(self, config: DetectorConfig, log: list[Entry]) -> None:
        self.detector = Detector(config)
        self.batches: list[tuple[str, ...]] = []
        self.said: dict[str, tuple[int, float, float, bool, list[float]]] = {}
        for entry in log:
            event = read_event(entry.body)
            records = read_records(event.records)
            if isinstance(event, BatchEvent):
                self.observe(entry, records)
            else:
                self.detector.feedback(records, event.labels)

    def observe(self, entry: Entry, records: Any) -> None:
        out = self.detector.observe(records.x)
        assert out.seq.tolist() == records.seq.tolist()
        for column in ("score", "threshold", "is_anomaly"):
            assert np.array_equal(getattr(out, column), getattr(records, column), equal_nan=column != "is_anomaly")
        self.batches.append(entry.ids)
        columns = (out.seq, out.score, out.threshold, out.is_anomaly, records.x)
        self.said.update(zip(entry.ids, zip(*(column.tolist() for column in columns), strict=True), strict=True))


def compare(reading: Reading, sender: Sender) -> None:
    """Find everything that was acknowledged to a sender in the log, as it was acknowledged."""
    for body, answer in sender.answered:
        assert tuple(body["ids"]) in reading.batches
        for row, name in enumerate(body["ids"]):
            seq, score, threshold, is_anomaly, x = reading.said[name]
            assert (seq, is_anomaly, x) == (answer["seq"][row], answer["is_anomaly"][row], body["samples"][row])
            if answer["ready"][row]:
                assert (score, threshold) == (answer["score"][row], answer["threshold"][row])


async def ask_again(client: httpx2.AsyncClient, sender: Sender) -> None:
    """Send everything once more: batches get their first answers, labels are known."""
    for body, answer in sender.answered:
        again = (await client.post(f"/observe?stream={sender.stream}", json=body)).json()
        assert again == answer | {"samples_needed": again["samples_needed"]}
    labels = [{"id": name, "anomaly": anomaly} for name, anomaly in sender.labels.items()]
    if labels:
        answer = (await client.post(f"/feedback?stream={sender.stream}", json={"labels": labels})).json()
        assert answer["outcomes"]["duplicate"] == len(labels)


async def test_kill_9_at_any_moment_loses_nothing_and_doubles_nothing(store_url: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("ITAN_TEST_SEED", random.randrange(10**6)))
    print("ITAN_TEST_SEED", seed)
    senders = [Sender(f"{stream}{number}", stream, seed) for stream in STREAMS for number in range(CLIENTS)]
    exported: dict[str, bytes] = {}
    configs: dict[str, DetectorConfig] = {}
    settings = {"snapshot_every_events": 7, "snapshot_every_seconds": 0.2, "label_horizon_samples": 10**6}
    with ServiceProcess(store_url, tmp_path, **settings) as service:
        await live_dangerously(service, senders, random.Random(seed))
        async with httpx2.AsyncClient(base_url=service.url, trust_env=False, timeout=60) as client:
            for sender in senders:
                await ask_again(client, sender)
            for stream in STREAMS:
                exported[stream] = (await client.get(f"/streams/{stream}/export")).content
                configs[stream] = DetectorConfig.from_dict((await client.get(f"/streams/{stream}")).json()["config"])
            metrics = (await client.get("/metrics")).text
        assert service.stop() == 0
        for reason in MISMATCHES:
            assert f'itan_replay_mismatches_total{{reason="{reason}"}} 0.0' in metrics
        assert "Traceback" not in service.said()
    for stream in STREAMS:
        reading = Reading(configs[stream], await read_log(store_url, stream))
        own = [sender for sender in senders if sender.stream == stream]
        for sender in own:
            compare(reading, sender)
        sent = sorted(tuple(body["ids"]) for sender in own for body, _ in sender.answered)
        assert sorted(reading.batches) == sent
        assert decode(exported[stream], "stream", 1)[1]["engine"].tobytes() == reading.detector.to_bytes()
    counts = [len(sender.answered) for sender in senders]
    print("batches", counts, "labels", [len(sender.labels) for sender in senders], "repeats", senders[0].repeats)
    assert sum(counts) > KILLS
