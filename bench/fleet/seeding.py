"""Mature streams as copies of one, put into the store directly: an import over HTTP tries the model out."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

from app.storage import LeaseHeld, Position, Snapshot, Store, open_store
from app.streams.state.state import new_state
from bench.speed import clusters
from core import Detector, DetectorConfig

SEED = 0
AT_ONCE = 64
SLICE = 1000
OWNER = "bench-fleet"


def model(features: int, training: int) -> Snapshot:
    """Train one stream and give its snapshot."""
    X, detector = clusters(SEED, training, features), Detector(DetectorConfig(features))
    for begin in range(0, training, SLICE):
        detector.observe(X[begin : begin + SLICE])
    position = Position(detector.next_seq - 1, 0)
    return Snapshot(position, new_state(detector, position).to_bytes())


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    """Open a store to the end of the block."""
    store = open_store(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def fill(url: str, names: Sequence[str], snapshot: Snapshot) -> None:
    """Create streams that stand at the snapshot."""
    async with opened(url) as store:
        for part in parts(names):
            await asyncio.gather(*(store.create(name, snapshot) for name in part))


async def empty(url: str, names: Sequence[str], lease_seconds: float) -> None:
    """Delete streams whose workers are gone, once the leases of these are over."""
    async with opened(url) as store:
        for part in parts(names):
            await asyncio.gather(*(_delete(store, name, lease_seconds) for name in part))


async def _delete(store: Store, name: str, lease_seconds: float) -> None:
    while True:
        try:
            token = await store.acquire(name, OWNER, lease_seconds)
        except LeaseHeld as held:
            await asyncio.sleep(held.seconds)
        else:
            await store.delete(name, token)
            return


def parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cut a list into parts of AT_ONCE."""
    return (names[begin : begin + AT_ONCE] for begin in range(0, len(names), AT_ONCE))
