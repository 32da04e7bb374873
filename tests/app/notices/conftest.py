"""Incidents in a store, and those who deliver notices of them."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.metrics import Metrics
from app.notices.audience import Audience
from app.notices.catalog import rules_in
from app.notices.delivery import Delivery
from app.notices.lane import Lane
from app.notices.outbox import waiting
from app.notices.rule import Rule
from app.notices.sender import Sender
from app.settings import Settings
from app.storage import Entry, Position, Snapshot
from app.storage.memory import MemoryStore
from app.streams.log.incidents import Incident
from app.streams.open.clock import Clock
from app.streams.open.worker import Worker

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class FastClock(Clock):
    """The real time, but whoever sleeps moves it instead."""

    def __init__(self) -> None:
        self.ahead = 0.0
        super().__init__()

    def now(self) -> float:
        return time.time() + self.ahead

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    async def sleep(self, seconds: float) -> None:
        self.ahead += seconds


class Streams:
    """Streams whose incidents open, grow and end."""

    def __init__(self, store: Any, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.heads: dict[str, Position] = {}
        self.opened: dict[tuple[str, int], int] = {}

    async def change(self, stream: str, seq: int, *, is_label: bool = False, **what: Any) -> Position:
        """Let an event change the incident of a seq."""
        if stream not in self.heads:
            self.heads[stream] = Position(0, 0)
            await self.store.create(stream, Snapshot(Position(0, 0), b""))
        head = self.heads[stream]
        after = Position(head.seq, head.sub + 1) if is_label else Position(max(head.seq + 1, seq), 0)
        now = self.clock.now()
        fields = {
            "seq": seq,
            "opened": self.opened.setdefault((stream, seq), round(now * 1000)),
            "begin": 1_790_000_000.0 + seq,
            "peak_seq": seq,
        }
        fields |= {"peak_time": fields["begin"], "peak_score": 9.0, "peak_severity": 3.0, "last_seq": seq}
        fields |= {"last_time": fields["begin"], "n_flagged": 1, "position": after}
        fields |= {"ended_at": now} if what.get("ended") else {}
        row = Incident(**fields | what).row(is_news=True)
        entry = Entry(after, b"event", None if is_label else head.seq + 1, ())
        await self.store.append(stream, head, entry, incidents=[row])
        self.heads[stream] = after
        return after

    async def open(self, stream: str, seq: int, **what: Any) -> None:
        await self.change(stream, seq, **what)

    async def close(self, stream: str, seq: int, **what: Any) -> None:
        await self.change(stream, seq, ended="closed", **what)


class Office:
    """One worker that delivers."""

    def __init__(self, store: Any, clock: Clock, name: str = "one", sender: Any = None) -> None:
        settings = Settings(worker=name, public_url="https://itan.example.org")
        self.metrics, self.clock, self.store = Metrics("0"), clock, store
        self.sender = sender or Sender(allow_private=True)
        self.rules = rules_in(store, clock, 50)
        self.worker = Worker.of(store, settings, clock, self.metrics)
        self.delivery = Delivery(self.worker, self.rules, Audience(), self.sender)

    async def put(self, name: str, **fields: Any) -> Rule:
        rule = Rule(**({"target": "webhook", "secret": SECRET} | fields))
        await self.rules.put(name, msgspec.json.encode(rule))
        return rule

    async def round(self) -> None:
        """Deliver all that can be delivered now, without tasks of its own."""
        rules = await self.rules.all()
        self.delivery._audience.rules = rules
        await self.delivery.route()
        for name, rule in rules.items():
            lane = self.lane(name, rule)
            for _ in range(1000):
                if not await self.store.count_changes(waiting(name)) or rule.is_quiet(self.clock.now()):
                    break
                async with asyncio.TaskGroup() as group:
                    await lane.begin(group)

    def lane(self, name: str, rule: Rule) -> Lane:
        return self.delivery.lane(name, rule)

    def metric(self, name: str) -> float:
        lines = self.metrics.text().decode().splitlines()
        return float(next(line.rsplit(" ", 1)[1] for line in lines if line.startswith(f"{name} ")))

    async def close(self) -> None:
        await self.delivery.stop()
        await self.sender.close()


@pytest.fixture
def clock() -> FastClock:
    return FastClock()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def streams(store: MemoryStore, clock: FastClock) -> Streams:
    return Streams(store, clock)


@pytest.fixture
async def office(store: MemoryStore, clock: FastClock) -> AsyncIterator[Office]:
    office = Office(store, clock)
    yield office
    await office.close()


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/itan.db"
