"""Streams on Redis whose keys somebody has overwritten or removed: named, checked, repaired, deleted."""

from collections.abc import Iterator

import pytest
from redis import Redis

from app.storage.redis import RedisStore
from tests.app.harness import Service, blobs
from tests.servers import RedisServer

X = blobs(200, 3)
HASHES = {"meta", "ids", "labels", "lease"}


@pytest.fixture
def admin(redis_server: RedisServer) -> Iterator[Redis]:
    """A plain connection, to do to the server what an operator might."""
    with Redis.from_url(redis_server.url) as client:
        yield client


async def fill(redis_server: RedisServer) -> list[float]:
    """Fill a stream "s", and give the scores that its next samples would get."""
    async with Service(RedisStore(redis_server.url)) as service:
        await service.observe(X[:100], ids=[f"i{i}" for i in range(100)])
        await service.feedback({"seq": 7, "anomaly": True}, {"seq": 8, "anomaly": False})
        await service.registry.save(service.registry.sessions["s"])
        await service.observe(X[100:150])
        exported = await service.export()
        await service.crash()
    async with Service() as unbroken:
        await unbroken.accepted(
            "PUT", "/streams/s/import", content=exported, headers={"Content-Type": "application/octet-stream"}
        )
        return (await unbroken.observe(X[150:]))["score"]


def overwrite(admin: Redis, part: str) -> str:
    key = f"itan:1:{{s}}:{part}"
    admin.delete(key)
    if part in HASHES or part == "log":
        admin.set(key, "foreign")
    else:
        admin.sadd(key, "foreign")
    return key


@pytest.mark.parametrize("part", ["meta", "log", "ids", "labels", "snap"])
async def test_a_key_of_another_type_is_named_and_the_state_can_be_kept(redis_server, admin, part):
    scores = await fill(redis_server)
    key = overwrite(admin, part)
    async with Service(RedisStore(redis_server.url)) as service:
        problem = await service.refused(
            "POST", "/observe?stream=s", 500, "store_corrupt", json={"samples": X[:1].tolist()}
        )
        assert key in problem["detail"] or part in ("snap", "ids", "labels", "meta")
        assert "'s'" in problem["detail"]
        check = await service.accepted("GET", "/streams/s/check")
        assert any(key in finding["text"] for finding in check["findings"])
        assert (await service.accepted("GET", "/readyz"))["damaged_streams"] == 1
        await service.refused("POST", "/streams/s/repair", 409, "repair_loses")
        repaired = await service.accepted("POST", "/streams/s/repair?lossy=true")
        lost = (101, 150) if part == "log" else (None, None)
        assert (repaired["lost_first_seq"], repaired["lost_last_seq"]) == lost
        answer = await service.observe(X[150:])
        assert answer["seq"][0] == 151
        if part != "log":
            assert answer["score"] == scores
        assert (await service.accepted("GET", "/readyz"))["damaged_streams"] == 0


@pytest.mark.parametrize("part", ["meta", "log", "ids", "labels", "snap", "base", "lease"])
async def test_a_damaged_stream_is_deleted_and_nothing_of_it_stays(redis_server, admin, part):
    await fill(redis_server)
    overwrite(admin, part)
    async with Service(RedisStore(redis_server.url)) as service:
        await service.http.get("/streams/s")
        assert (await service.http.delete("/streams/s")).status_code == 204
        assert [key for key in admin.keys("*{s}*") if not key.endswith(b":lease")] == []
        assert (await service.observe([[1.0]]))["seq"] == [1]


async def test_a_missing_snapshot_is_rebuilt_without_loss(redis_server, admin):
    scores = await fill(redis_server)
    admin.delete("itan:1:{s}:snap")
    async with Service(RedisStore(redis_server.url)) as service:
        assert (await service.observe(X[150:]))["score"] == scores
        await service.snapshotter.save_due()
        labelled = await service.feedback({"id": "i20", "anomaly": True}, {"seq": 7, "anomaly": True})
        assert labelled["outcome"] == ["applied", "duplicate"]
        assert (await service.accepted("GET", "/streams/s"))["rebuilt"]["lost_first_seq"] is None
    assert admin.exists("itan:1:{s}:snap")


@pytest.mark.parametrize("trimmed", [True, False])
async def test_a_head_that_is_gone_is_found_and_the_state_is_kept(redis_server, admin, trimmed):
    scores = await fill(redis_server)
    if trimmed:
        admin.xtrim("itan:1:{s}:log", minid="101-0", approximate=False)
    admin.delete("itan:1:{s}:meta")
    async with Service(RedisStore(redis_server.url)) as service:
        assert (await service.accepted("GET", "/streams"))["streams"] == [{"stream": "s"}]
        check = await service.accepted("GET", "/streams/s/check")
        assert "its head is missing" in [finding["text"] for finding in check["findings"]]
        await service.refused("POST", "/streams/s/repair", 409, "repair_loses")
        await service.accepted("POST", "/streams/s/repair?lossy=true")
        assert (await service.observe(X[150:]))["score"] == scores
