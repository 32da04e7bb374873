"""Archived files, and who reads or erases them when streams and workers come and go."""

import asyncio

import pytest

from app.streams.maintenance.move import Move
from tests.app.archived import IDS, SAMPLES, X, feed, files_in, move, oldest_in_store, rows, settings
from tests.app.harness import Service


async def test_a_file_that_is_gone_makes_its_samples_expired(tmp_path):
    async with Service(**settings(tmp_path)) as service:
        await feed(service)
        await move(service)
        for path in tmp_path.rglob("*.block"):
            path.unlink()
        assert (await service.feedback({"seq": 3, "anomaly": True}))["outcome"] == ["expired"]
        assert await service.metric("itan_archive_reads_total", outcome="missing") == 1


@pytest.mark.parametrize("how", ["delete", "reset"])
async def test_a_stream_that_begins_anew_reads_no_older_file(tmp_path, how):
    async with Service(**settings(tmp_path)) as service:
        await feed(service)
        await move(service)
        before = files_in(tmp_path)
        if how == "delete":
            assert (await service.http.delete("/streams/s")).status_code == 204
        else:
            await service.accepted("POST", "/streams/s/reset")
        answer = await service.observe(X[:4], ids=IDS[:4])
        assert answer["seq"][0] == (1 if how == "delete" else SAMPLES + 1)
        await feed(service, 4)
        await move(service)
        after = files_in(tmp_path)
        assert not set(before) & set(after) if how == "delete" else set(before) < set(after)
        assert len(rows(tmp_path)) == len(set(rows(tmp_path)))


async def test_what_the_label_horizon_leaves_behind_is_read_no_more_but_stays(tmp_path):
    async with Service(**settings(tmp_path, label_horizon_samples=60)) as service:
        for last in (60, SAMPLES):
            await feed(service, last - 60, last)
            await move(service)
        assert (await service.feedback({"seq": 3, "anomaly": True}))["outcome"] == ["expired"]
        assert (await service.feedback({"seq": 70, "anomaly": True}))["outcome"] == ["applied"]
        assert all(row.seq > SAMPLES - 60 for row in await service.store.files("s"))
    assert (1,) in rows(tmp_path)


async def test_who_does_not_write_a_stream_remembers_none_of_its_files(tmp_path):
    async with Service(**settings(tmp_path)) as service:
        log = service.registry.worker.log("s")
        await feed(service)
        await move(service)
        before = await log.entries_holding([1])
        assert (await service.http.delete("/streams/s")).status_code == 204
        await service.observe(X[:60] + 1.0)
        await feed(service, 60)
        await move(service)
        assert await oldest_in_store(service) > 60
        (now,) = await log.entries_holding([1])
        assert now.position.seq == 60
        assert now != before[0]


async def test_files_of_a_new_stream_of_the_same_name_are_not_erased(tmp_path):
    async with Service(**settings(tmp_path)) as service:
        archiver = service.app.state.archiver
        await feed(service)
        await move(service)
        old = set(files_in(tmp_path))
        assert (await service.http.delete("/streams/s")).status_code == 204
        await feed(service)
        await service.registry.save(service.registry.sessions["s"])
        await Move(service.registry, archiver._archive, "s").run()
        new = set(files_in(tmp_path)) - old
        assert new
        await archiver.erase()
        assert set(files_in(tmp_path)) == old | new, "a delete may be under way: nothing is erased yet"
        service.clock.advance(61.0)
        await archiver.erase()
        assert set(files_in(tmp_path)) == new
        assert (await service.feedback({"seq": 1, "anomaly": True}))["outcome"] == ["applied"]


async def test_a_file_that_is_written_while_the_log_begins_anew_is_erased(tmp_path):
    async with Service(**settings(tmp_path)) as service:
        await feed(service)
        await service.registry.save(service.registry.sessions["s"])
        files = service.app.state.archiver._archive._files
        write = files.write

        async def reset_then_write(name: str, body: bytes) -> None:
            if name.startswith("log/"):
                await service.accepted("POST", "/streams/s/reset")
            await write(name, body)

        files.write = reset_then_write
        await service.app.state.archiver.work()
        assert files_in(tmp_path) == []
        assert await service.store.files("s") == []


async def test_two_workers_need_not_agree_on_time(tmp_path):
    """The second takes the stream over while the first is writing; the first one's file does no harm."""
    async with (
        Service(**settings(tmp_path), worker="one") as one,
        Service(one.store, **settings(tmp_path), worker="two") as two,
    ):
        await feed(one)
        await one.registry.save(one.registry.sessions["s"])
        files, begun, go_on = one.app.state.archiver._archive._files, asyncio.Event(), asyncio.Event()
        write = files.write

        async def slow(name: str, body: bytes) -> None:
            if name.startswith("log/"):
                begun.set()
                await go_on.wait()
            await write(name, body)

        files.write = slow
        moving = asyncio.create_task(one.app.state.archiver.work())
        await begun.wait()
        async with one.registry.changing("s") as session:
            session.forget()  # its lease is gone
        await one.registry.worker.leases.finish()
        await two.observe(X[:4] + 1.0)
        await move(two)
        go_on.set()
        await moving
        assert (await two.feedback({"seq": 3, "anomaly": True}))["outcome"] == ["applied"]
    assert rows(tmp_path) == [(seq,) for seq in range(1, len(rows(tmp_path)) + 1)]
