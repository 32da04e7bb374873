"""Records that are looked up in the log."""

import tracemalloc

from app.storage.sqlite import SqliteStore
from tests.app.harness import Service, blobs

BATCHES = 30


async def test_a_look_into_many_batches_holds_a_few_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr("app.storage.pages.PAGE_BYTES", 100_000)
    async with Service(SqliteStore(tmp_path / "itan.db")) as service:
        await service.accepted("PUT", "/streams/s", json={"n_features": 32, "max_nodes": 1})
        for seed in range(BATCHES):
            await service.observe(blobs(250, m=32, seed=seed))
        log_bytes = (await service.store.size("s")).log_bytes
        labels = [{"seq": 250 * i + 1 + i, "anomaly": False} for i in range(BATCHES)]
        tracemalloc.start()
        answer = await service.accepted("POST", "/feedback?stream=s", json={"labels": labels})
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    print(f"held {peak:,} bytes at most for a log of {log_bytes:,}")
    assert answer["outcome"] == ["applied"] * BATCHES
    assert peak < log_bytes / 2
