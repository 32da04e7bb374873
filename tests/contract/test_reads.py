"""Whatever the live page reads is the same from every store."""

from typing import Any

from app.storage import open_store
from tests.app.harness import Service, blobs

READS = (
    "/streams/s/history",
    "/streams/s/history?from=1&to=40&points=16",
    "/streams/s/history?from=42&values=true",
    "/streams/s/samples/41",
    "/streams/s/review",
    "/streams?details=true",
    "/streams/s",
)
WEIGHTS = ("memory_bytes", "storage", "silent_seconds")


async def read_all(url: str) -> dict[str, Any]:
    """Fill a stream over HTTP, and read it in all ways."""
    async with Service(open_store(url)) as service:
        for batch in (blobs(60, seed=1), blobs(7, seed=2), blobs(1, seed=3)):
            await service.observe(batch, ids=[f"{len(batch)}.{i}" for i in range(len(batch))])
            await service.feedback({"seq": 41, "anomaly": True}, {"seq": 60, "anomaly": False})
        return {path: weightless(await service.accepted("GET", path)) for path in READS}


def weightless(answer: dict[str, Any]) -> dict[str, Any]:
    """Leave out what tells of the store itself, and of the moment."""
    streams = [weightless(one) for one in answer.get("streams", ())]
    kept = {name: value for name, value in answer.items() if name not in WEIGHTS}
    return kept | {"streams": streams} if streams else kept


async def test_a_stream_reads_the_same_from_every_store(store_url):
    assert await read_all(store_url) == await read_all("memory://")
