"""Clients that retry until they are answered, and the proof that what they were told is what the store holds, once."""

import asyncio
import itertools
import random
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import httpx2
import numpy as np

from app.metrics import MISMATCHES
from app.storage import Entry, Position, open_store
from app.streams.log.events import BatchEvent, LabelEvent, read_event, read_records
from app.streams.log.log import Log
from app.streams.open.replay import times_of
from core import Detector, DetectorConfig
from core.snapshot import decode_snapshot
from tests.app.harness import blobs

PAUSE_SECONDS = 0.02
FAR = 15.0
ANSWERS_SECONDS = 60.0


class Sender:
    """A client that sends batches and labels, each until it is answered, with the same ids as before.

    It goes to any of the addresses, and takes the codes that it is told may pass as a reason to try again.
    """

    pause_seconds = 0.0
    begins_with = 10
    """So many samples come first, and are labelled."""

    def __init__(
        self, name: str, stream: str, seed: int, urls: list[str], *may_pass: str, patience: float = 30
    ) -> None:
        self.name, self.stream, self.urls, self.may_pass = name, stream, urls, may_pass
        self.random = random.Random(f"{seed} {name}")
        self.numbers = itertools.count()
        self.X = samples(4000, 3, seed=seed % 1000 + ord(name[-1]))
        self.answered: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.labels: dict[str, bool | None] = {}
        self.is_up = asyncio.Event()
        self.is_up.set()
        self.is_over = False
        self.answers = self.repeats = 0
        self.refusals: set[str] = set()
        self.on_answer: Callable[[], None] = lambda: None
        self.http = httpx2.AsyncClient(trust_env=False, timeout=patience)

    def next_request(self) -> tuple[str, dict[str, Any]]:
        """Think of something to send: a batch, one in ten of them a big one, or labels of samples answered before."""
        if self.answered and (not self.labels or self.random.random() < 0.35):
            return "/feedback", {"labels": self.some_labels()}
        sizes = [1, 2, self.random.randint(3, 16), self.random.randint(17, 40)]
        size = self.random.choice(sizes * 3 + [300]) if self.answered else self.begins_with
        ids = [f"{self.name}-{next(self.numbers)}" for _ in range(size)]
        return "/observe", {"samples": [self.row(name) for name in ids], "ids": ids}

    def row(self, name: str) -> list[float | None]:
        """Give the sample of an id."""
        return self.X[int(name.rpartition("-")[2]) % len(self.X)]

    def some_labels(self) -> list[dict[str, Any]]:
        """Label samples of one batch, or all of it; some labels are wrong, some revised, some withdrawn."""
        body, _ = self.random.choice(self.answered)
        most = self.random.choice([self.random.randint(1, 9)] * 9 + [300]) if self.labels else 300
        chosen = self.random.sample(body["ids"], min(len(body["ids"]), most))
        return [{"id": name, "anomaly": self.label(name)} for name in chosen]

    def label(self, name: str) -> bool | None:
        """Say what a sample is: mostly right, but of far ones often that they are normal."""
        if name in self.labels and self.random.random() < 0.3:
            return None
        is_far = max(abs(value) for value in self.row(name) if value is not None) > FAR
        return self.random.random() < (0.6 if is_far else 0.05)

    async def send(self) -> None:
        """Go on until it is over and the last request is answered."""
        while not self.is_over:
            path, body = self.next_request()
            answer = await self.insist(path, body)
            if path == "/observe":
                self.answered.append((body, answer))
            else:
                assert set(answer["outcome"]) <= {"applied", "duplicate", "revised", "withdrawn"}
                self.labels.update((label["id"], label["anomaly"]) for label in body["labels"])
            await asyncio.sleep(self.pause_seconds)
        await self.http.aclose()

    async def insist(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send until there is an answer."""
        while True:
            await self.is_up.wait()
            try:
                answer = await self.http.post(f"{self.random.choice(self.urls)}{path}?stream={self.stream}", json=body)
            except httpx2.TransportError:
                self.repeats += 1
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            if answer.status_code == 200:
                self.answers += 1
                self.note(answer)
                self.on_answer()
                return answer.json()
            await self.expect_refusal(answer)

    def note(self, answer: httpx2.Response) -> None:
        """Look at an answer."""

    async def expect_refusal(self, answer: httpx2.Response) -> None:
        assert answer.status_code == 503, answer.text
        assert answer.json()["code"] in self.may_pass, answer.text
        assert int(answer.headers["retry-after"]) >= 1
        self.refusals.add(answer.json()["code"])
        await asyncio.sleep(PAUSE_SECONDS)


def samples(n: int, m: int, seed: int) -> list[list[float | None]]:
    """Make clusters with outliers near and far, and a value in twenty that is missing."""
    rng = np.random.default_rng(seed)
    X = blobs(n, m, seed=seed)
    X[rng.random(n) < 0.04] *= rng.choice([30.0, -1e3, 1e6])
    X[(rng.random(X.shape) < 0.05) & (np.arange(m) > 0)] = np.nan
    return [[None if np.isnan(value) else value for value in row] for row in X.tolist()]


def count_answers(senders: Iterable[Sender]) -> int:
    return sum(sender.answers for sender in senders)


async def wait_a_moment(tasks: Iterable["asyncio.Task[None]"], seconds: float) -> None:
    """Let the senders go on; what one of them finds wrong ends the test."""
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()


async def wait_for_answers(tasks: Iterable["asyncio.Task[None]"], senders: list[Sender], more: int) -> None:
    """Let each sender get so many answers more."""
    wanted = {sender: sender.answers + more for sender in senders}
    end = time.monotonic() + ANSWERS_SECONDS
    while waiting := [sender.name for sender in senders if sender.answers < wanted[sender]]:
        assert time.monotonic() < end, f"no more answers for {waiting}"
        await wait_a_moment(tasks, 0.02)


async def end(tasks: Iterable["asyncio.Task[None]"], senders: list[Sender]) -> None:
    """Let every sender get its last answer."""
    for sender in senders:
        sender.is_over = True
    await asyncio.gather(*tasks)


async def read_log(url: str, stream: str) -> list[Entry]:
    """Read a stream's whole log."""
    store = open_store(url)
    await store.open()
    log, found = Log(store, stream), list[Entry]()
    while page := await log.entries(found[-1].position if found else Position(0, 0), 100):
        found += page
    await store.close()
    return found


class Reading:
    """A detector fed with a log, event by event, and what the log says of each sample."""

    def __init__(self, config: DetectorConfig, log: list[Entry]) -> None:
        self.detector = Detector(config)
        self.batches: list[tuple[str, ...]] = []
        self.said: dict[str, tuple[int, float, float, bool, list[float | None]]] = {}
        for entry in log:
            event = read_event(entry.body)
            if isinstance(event, BatchEvent):
                self.observe(entry, read_records(event.records))
            elif isinstance(event, LabelEvent):
                self.detector.feedback(read_records(event.records), event.labels)
            else:
                self.detector.reconfigure(event.after)

    def observe(self, entry: Entry, records: Any) -> None:
        out = self.detector.observe(records.x, times_of(records.time, self.detector.config))
        assert out.seq.tolist() == records.seq.tolist()
        for column in ("score", "threshold", "is_anomaly"):
            assert np.array_equal(getattr(out, column), getattr(records, column), equal_nan=column != "is_anomaly")
        self.batches.append(entry.ids)
        columns = (out.seq, out.score, out.threshold, out.is_anomaly, np.where(np.isnan(records.x), None, records.x))
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


async def ask_again(sender: Sender) -> None:
    """Send everything once more: batches get their first answers, labels are known."""
    sender.http = httpx2.AsyncClient(trust_env=False, timeout=30)
    for body, answer in sender.answered:
        again = await sender.insist("/observe", body)
        assert again == answer | {"samples_needed": again["samples_needed"]}
    labels = [{"id": name, "anomaly": anomaly} for name, anomaly in sender.labels.items()]
    if labels:
        answer = await sender.insist("/feedback", {"labels": labels})
        assert answer["outcomes"]["duplicate"] == len(labels)
    await sender.http.aclose()


class Witness(NamedTuple):
    """What the workers say of a stream: how it is configured, and its engine as each of them has it."""

    config: DetectorConfig
    engines: set[bytes]


async def question(urls: list[str], senders: list[Sender]) -> dict[str, Witness]:
    """Send everything again, then ask all workers for all streams; none may know of anything lost."""
    for sender in senders:
        await ask_again(sender)
    witnesses: dict[str, Witness] = {}
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        for stream in dict.fromkeys(sender.stream for sender in senders):
            described = (await http.get(f"{urls[0]}/streams/{stream}")).json()
            assert described["rebuilt"] is None
            assert sum(described["replay_mismatches"][reason] for reason in MISMATCHES) == 0, described
            checked = (await http.get(f"{urls[0]}/streams/{stream}/check")).json()
            assert checked["ok"], checked
            exported = [(await http.get(f"{url}/streams/{stream}/export")).content for url in urls]
            engines = {decode_snapshot(body, "stream", 1)[1]["engine"].tobytes() for body in exported}
            witnesses[stream] = Witness(DetectorConfig.from_dict(described["config"]), engines)
        for url in urls:
            metrics = (await http.get(f"{url}/metrics")).text
            for reason in MISMATCHES:
                assert f'itan_replay_mismatches_total{{reason="{reason}"}} 0.0' in metrics
            assert "itan_store_setbacks_total 0.0" in metrics
    return witnesses


async def prove(store_url: str, witnesses: dict[str, Witness], senders: list[Sender]) -> None:
    """Each stream equals one sequential run of its log, bit for bit, and everything acknowledged is in it, once."""
    for stream, witness in witnesses.items():
        reading = Reading(witness.config, await read_log(store_url, stream))
        own = [sender for sender in senders if sender.stream == stream]
        for sender in own:
            compare(reading, sender)
        sent = sorted(tuple(body["ids"]) for sender in own for body, _ in sender.answered)
        assert sorted(reading.batches) == sent
        assert witness.engines == {reading.detector.to_bytes()}
