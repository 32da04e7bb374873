"""What is moved to the archive can be labelled, found by its id, and read as if it were still in the store."""

from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from app.storage import START, ArchiveUnavailable, StoreUnavailable
from app.storage.memory import MemoryStore
from app.streams.log import compaction
from app.streams.maintenance.copies import copy, digest
from tests.app.archived import IDS, IN_STORE, SAMPLES, X, feed, move, oldest_in_store, rows, settings
from tests.app.harness import DisturbedStore, Service, blobs, raising

Work = Callable[[Service], Awaitable[list[Any]]]


async def both(folder: Path, work: Work) -> tuple[list[Any], list[Any]]:
    """Do the same with everything in the store, and with most of it in the archive."""
    async with Service(**IN_STORE) as service:
        await feed(service)
        in_store = await work(service)
    async with Service(**settings(folder)) as service:
        await feed(service)
        await move(service)
        assert await oldest_in_store(service) > SAMPLES - 40
        return in_store, await work(service)


async def test_labels_of_archived_samples_do_what_they_do_in_the_store(tmp_path):
    async def label(service: Service) -> list[Any]:
        body = [
            {"id": "id-5", "anomaly": True},
            {"seq": 40, "anomaly": False},
            {"id": "id-119", "anomaly": True},
        ]
        given = [await service.feedback(*body), await service.feedback(*body)]
        given.append(await service.feedback({"seq": 5, "anomaly": False}, {"id": "id-40", "anomaly": None}))
        return [*given, service.registry.peek("s").detector.to_bytes()]

    in_store, in_archive = await both(tmp_path, label)
    assert in_store == in_archive
    assert [given["outcome"] for given in in_archive[:3]] == [
        ["applied"] * 3,
        ["duplicate"] * 3,
        ["revised", "withdrawn"],
    ]


async def test_archived_ids_are_known_and_new_ones_make_no_read(tmp_path):
    async def observe(service: Service) -> list[Any]:
        before = [await service.metric("itan_archive_reads_total", outcome=how) for how in ("read", "cached")]
        new = await service.observe(blobs(50, seed=9), ids=[f"new-{i}" for i in range(50)])
        assert before == [await service.metric("itan_archive_reads_total", outcome=how) for how in ("read", "cached")]
        known = await service.observe(X[2:6], ids=IDS[2:6])
        other = {"samples": [[1.0, 2.0]], "ids": ["id-7"]}
        return [new, known, await service.refused("POST", "/observe?stream=s", 409, "id_conflict", json=other)]

    in_store, in_archive = await both(tmp_path, observe)
    assert in_store == in_archive
    assert in_archive[1]["seq"] == [3, 4, 5, 6]


async def test_readers_see_the_archive_too(tmp_path):
    async def read(service: Service) -> list[Any]:
        return [
            await service.accepted("GET", f"/streams/s/history?from=1&to={SAMPLES}&points=1000"),
            await service.accepted("GET", "/streams/s/history?points=16"),
            await service.accepted("GET", "/streams/s/samples/17"),
            await service.accepted("GET", "/incidents?stream=s"),
        ]

    in_store, in_archive = await both(tmp_path, read)
    assert in_store == in_archive
    assert in_archive[0]["seq"] == list(range(1, SAMPLES + 1))


async def test_a_restarted_worker_finds_what_was_archived(tmp_path):
    async with Service(**settings(tmp_path)) as service:
        await feed(service)
        await service.feedback({"seq": 9, "anomaly": True})
        await move(service)
        store = service.store
    async with Service(store, **settings(tmp_path)) as service:
        assert (await service.feedback({"id": "id-9", "anomaly": True}))["outcome"] == ["duplicate"]
        assert (await service.observe(X[:4], ids=IDS[:4]))["seq"] == [1, 2, 3, 4]


async def test_while_the_archive_fails_requests_go_on_and_nothing_is_trimmed(tmp_path):
    async with Service(**settings(tmp_path)) as service:
        await feed(service, 0, 60)
        await move(service)
        oldest = await oldest_in_store(service)
        files = service.app.state.archiver._archive._files
        working = files.write, files.read

        async def fail(*_: object) -> None:
            raise ArchiveUnavailable("it is away")

        files.write = files.read = fail
        await feed(service, 60)
        await move(service)
        service.clock.advance(61.0)
        assert await oldest_in_store(service) == oldest
        assert await service.metric("itan_archive_failing_seconds") == 61
        labels = {"labels": [{"seq": SAMPLES - 1, "anomaly": True}, {"seq": 3, "anomaly": True}]}
        model = service.registry.peek("s").detector.to_bytes()
        body = await service.refused("POST", "/feedback?stream=s", 503, "store_unavailable", json=labels)
        assert "archive" in body["detail"]
        newest = await service.accepted("GET", "/streams/s/history?points=1000")
        assert newest["seq"][0] == oldest, "what the store keeps is shown"
        await service.refused("GET", "/streams/s/history?from=1&points=1000", 503, "store_unavailable")
        assert (await service.accepted("GET", "/streams/s/review"))["to_review"] >= 0
        assert (await service.http.post("/feedback?stream=s", json=labels)).headers["retry-after"]
        assert service.registry.peek("s").detector.to_bytes() == model, "nothing of the request was applied"
        assert (await service.feedback({"seq": SAMPLES - 2, "anomaly": True}))["outcome"] == ["applied"]
        files.write, files.read = working
        await move(service)
        assert await oldest_in_store(service) > oldest
        assert await service.metric("itan_archive_failing_seconds") == 0
        assert (await service.feedback(*labels["labels"]))["outcome"] == ["applied"] * 2
    assert rows(tmp_path) == [(seq,) for seq in range(1, len(rows(tmp_path)) + 1)]


async def test_without_the_store_the_archiver_tries_again_less_and_less_often(tmp_path):
    store = DisturbedStore(MemoryStore())
    async with Service(store, **settings(tmp_path)) as service:
        archiver = service.app.state.archiver
        store.before["documents"] = raising(StoreUnavailable("it is away"))
        pauses = []
        for _ in range(9):
            await archiver.work()
            pauses.append(archiver._pause_seconds)
        assert pauses[:2] == [1.0, 2.0]
        assert pauses[-1] == 60.0
        del store.before["documents"]
        await archiver.work()
        assert archiver._pause_seconds == 0.5
        assert archiver.failing_seconds() == 0


async def test_a_copy_of_the_store_knows_the_archive(tmp_path):
    async with Service(**settings(tmp_path)) as service:
        await feed(service)
        await service.feedback({"seq": 9, "anomaly": True})
        await service.observe(X[:4] + 1.0)
        await move(service)
        await feed(service, 0, 40, stream="other")
        store, copied = service.store, MemoryStore()
    async with Service(store, **settings(tmp_path)) as service:
        await service.feedback({"seq": 12, "anomaly": False})
    for stream in ("s", "other"):
        await copy(store, copied, stream)
        assert await digest(store, stream) == await digest(copied, stream)
    async with Service(copied, **settings(tmp_path)) as service:
        labels = [{"seq": 9, "anomaly": True}, {"seq": 12, "anomaly": False}, {"id": "id-10", "anomaly": True}]
        assert (await service.feedback(*labels))["outcome"] == ["duplicate", "duplicate", "applied"]
        assert (await service.observe(X[:4], ids=IDS[:4]))["seq"] == [1, 2, 3, 4]


async def test_a_check_finds_nothing_wrong_with_an_archived_stream(tmp_path):
    async with Service(**settings(tmp_path)) as service:
        await feed(service)
        await move(service)
        found = await service.accepted("GET", "/streams/s/check")
        assert found["ok"], found
        await feed(service, 0, 8, stream="t")
        read = [await service.metric("itan_archive_reads_total", outcome=how) for how in ("read", "cached")]
        assert read == [0, 0]


async def test_blocks_move_to_the_archive_like_entries(tmp_path, monkeypatch):
    monkeypatch.setattr(compaction, "LEAST_SAMPLES", 16)
    monkeypatch.setattr(compaction, "MOST_SAMPLES", 20)
    async with Service(**settings(tmp_path)) as service:
        for last in (60, SAMPLES):
            await feed(service, last - 60, last)
            await service.registry.save(service.registry.sessions["s"])
            await service.app.state.compactor.compact_due()
            assert await service.store.packed_to("s")
            await service.app.state.archiver.work()
        assert [seq for (seq,) in rows(tmp_path)] == list(range(1, len(rows(tmp_path)) + 1))
        files = await service.registry.sessions["s"].log.archived.files()
        assert files[-1].last.seq > SAMPLES - 40
        assert (await service.observe(X[2:6], ids=IDS[2:6]))["seq"] == [3, 4, 5, 6]
        assert (await service.observe(X, ids=IDS))["seq"] == list(range(1, SAMPLES + 1))
        labels = [{"id": "id-5", "anomaly": True}, {"seq": 70, "anomaly": False}]
        assert (await service.feedback(*labels))["outcome"] == ["applied", "applied"]
        given = await service.accepted("GET", f"/streams/s/history?from=1&to={SAMPLES}&points=1000")
        assert given["seq"] == list(range(1, SAMPLES + 1))
        assert (await service.accepted("GET", "/streams/s/check"))["ok"]


async def test_no_label_is_passed_over_where_a_file_ends(tmp_path):
    async with Service(**settings(tmp_path)) as service:
        for first in range(0, SAMPLES, 4):
            await feed(service, first, first + 4)
            await service.feedback({"seq": first + 1, "anomaly": False})
        await move(service)
        log = service.registry.worker.log("s")
        entries = [entry async for page in log.pages(START) for entry in page]
        assert len(entries) == SAMPLES // 2
        for entry, following in pairwise(entries):
            assert await log.entries(entry.position, 1) == [following]


@pytest.mark.parametrize("ids", [b"\xc1", b"\x91\xc4\x01a"])
async def test_damaged_ids_of_files_are_told(tmp_path, ids):
    async with Service(**settings(tmp_path)) as service:
        await feed(service)
        await move(service)
        session = service.registry.sessions["s"]
        file = (await session.log.archived.files())[0]
        await service.store.put_file("s", file.row(ids), session.leases.token("s"))
        session.log.archived.forget()
        body = {"samples": [[1.0, 2.0]], "ids": ["new"]}
        await service.refused("POST", "/observe?stream=s", 500, "store_corrupt", json=body)
