"""A worker may die at every step of a move: nothing is lost, and nothing is there twice."""

from copy import deepcopy
from itertools import count
from pathlib import Path

from app.storage.memory import MemoryStore
from tests.app.archived import IDS, Killed, Steps, X, feed, move, rows, settings
from tests.app.harness import DisturbedStore, Service

WRITES = ("put_file", "save_snapshot", "drop_files")
N = 60


async def filled() -> MemoryStore:
    """Make a store with a stream, two of whose samples have labels."""
    async with Service() as service:
        await feed(service, 0, N)
        await service.feedback({"seq": 4, "anomaly": True}, {"seq": 15, "anomaly": True})
    return service.store


async def die_at(folder: Path, full: MemoryStore, step: int) -> tuple[DisturbedStore, bool]:
    """Move the log of a copy of the stream until a step; tell whether the process died there."""
    store, steps = DisturbedStore(MemoryStore()), Steps(step)
    store.store.stored = deepcopy(full.stored)
    service = Service(store, **settings(folder, log_samples=20, label_horizon_samples=50))
    await service.__aenter__()
    await service.observe(X[N : N + 1], ids=IDS[N : N + 1])
    files = service.app.state.archiver._archive._files
    write = files.write

    async def disturbed(name: str, body: bytes) -> None:
        await steps.take()
        await write(name, body)
        await steps.take()

    files.write = disturbed
    store.before = store.after = dict.fromkeys(WRITES, steps.take)
    try:
        await move(service)
    except Killed:
        await service.crash()
        return store, True
    finally:
        store.before = store.after = {}
    await service.__aexit__(None, None, None)
    return store, False


async def test_a_move_that_is_cut_short_is_finished_by_the_next_worker(tmp_path):
    full = await filled()
    for step in count():
        folder = tmp_path / str(step)
        store, has_died = await die_at(folder, full, step)
        async with Service(store, **settings(folder, log_samples=20, label_horizon_samples=50)) as service:
            await service.observe(X[N + 1 : N + 2], ids=IDS[N + 1 : N + 2])
            await move(service)
            labels = [{"id": "id-15", "anomaly": True}, {"seq": 18, "anomaly": False}]
            assert (await service.feedback(*labels))["outcome"] == ["duplicate", "applied"], step
            assert (await service.observe(X[16:20], ids=IDS[16:20]))["seq"] == [17, 18, 19, 20]
        archived = [seq for (seq,) in rows(folder)]
        assert archived == list(range(1, len(archived) + 1)), step
        assert len(list(folder.glob("log/*/*"))) == len(list(folder.glob("samples/*/*"))), step
        if not has_died:
            assert step > 10
            return
