"""What appends, snapshots and leases cost the store itself: the same calls as a worker's, and nothing else."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any, Final, Self

from app.storage import START, Append, Entry, Position, Snapshot, Store, open_store
from app.streams.log.log import Log
from app.streams.state.state import StreamState
from bench.fleet.seeding import OWNER
from bench.fleet.stores import FleetStore

STREAMS: Final = 64
ROUNDS: Final = 16
LEASE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class StoreCosts:
    """Seconds of CPU of the store for each call, and bytes for each sample that was appended.

    written_seconds are those of a worker for a snapshot.
    """

    append_seconds: float
    snapshot_seconds: float
    written_seconds: float
    renewal_seconds: float
    sample_bytes: float


def measure(place: FleetStore, example: str, names: Sequence[str]) -> StoreCosts:
    """Create streams, append the first batch of a stream to them, store its snapshot for them, renew their leases."""
    with asyncio.Runner() as runner:
        calls = runner.run(Calls.of(open_store(place.url), example, names))
        used = place.figures().used_bytes
        appending, _ = _cpu(place, runner, calls.append())
        grown = place.figures().used_bytes - used
        saving, called = _cpu(place, runner, calls.save())
        renewing, _ = _cpu(place, runner, calls.renew())
        runner.run(calls.store.close())
    each = len(names) * ROUNDS
    grown_bytes = grown / each / calls.entry.n_samples
    written = called / each + _writing(calls.snapshot)
    return StoreCosts(appending / each, saving / each, written, renewing / each, grown_bytes)


def _writing(snapshot: Snapshot) -> float:
    """Give the CPU that it takes to write a snapshot, before it is stored."""
    state = StreamState.from_bytes(snapshot.body, snapshot.position)
    began = process_time()
    for _ in range(ROUNDS):
        state.to_bytes()
    return (process_time() - began) / ROUNDS


def _cpu(place: FleetStore, runner: asyncio.Runner, calls: Coroutine[Any, Any, None]) -> tuple[float, float]:
    """Give the CPU that calls take of the store and of who calls it: of this process for both if it has no server."""
    before = place.figures().cpu_seconds, process_time()
    runner.run(calls)
    own = process_time() - before[1]
    return (place.figures().cpu_seconds - before[0] if place.is_shared else own), own


class Calls:
    """The calls of a worker that writes a few streams."""

    def __init__(self, store: Store, entry: Entry, snapshot: Snapshot, tokens: dict[str, int]) -> None:
        self.store, self.entry, self.snapshot, self._tokens = store, entry, snapshot, tokens
        self._head = START

    @classmethod
    async def of(cls, store: Store, example: str, names: Sequence[str]) -> Self:
        """Open the store, and create streams of these names."""
        await store.open()
        loaded, entries = await store.load(example), await Log(store, example).entries(START, ROUNDS)
        assert loaded is not None
        tokens = {name: await store.acquire(name, OWNER, LEASE_SECONDS) for name in names}
        for name, token in tokens.items():
            await store.create(name, Snapshot(START, b""), token)
        return cls(store, next(entry for entry in entries if entry.n_samples), loaded[0], tokens)

    async def append(self) -> None:
        """Append a batch to each stream, so many times."""
        for _ in range(ROUNDS):
            head = Position(self._head.seq + self.entry.n_samples, 0)
            entry = Entry(head, self.entry.body, self._head.seq + 1, self.entry.ids)
            appends = (self.store.append(*Append(name, self._head, entry, token=t)) for name, t in self._tokens.items())
            await asyncio.gather(*appends)
            self._head = head

    async def save(self) -> None:
        """Store as many snapshots."""
        for _ in range(ROUNDS):
            snapshot = Snapshot(self._head, self.snapshot.body)
            await asyncio.gather(*(self.store.save_snapshot(name, snapshot, 0, t) for name, t in self._tokens.items()))

    async def renew(self) -> None:
        """Renew all leases as often."""
        for _ in range(ROUNDS):
            await self.store.renew(OWNER, self._tokens, LEASE_SECONDS)
