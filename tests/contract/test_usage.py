"""How full a store is, and which writes it refused recently."""

import pytest
from redis.exceptions import ResponseError

from app.storage import Cause, Entry, Position, Snapshot, StoreUnavailable
from app.storage.redis import RedisStore
from app.storage.redis.durability import fullest
from app.storage.redis.errors import wrap_error
from app.storage.sqlite import SqliteStore
from app.storage.usage import Usage
from app.storage.write_refusals import RECENT_SECONDS, WriteRefusals
from tests.contract.test_store_sqlite import set_pragma

START = Snapshot(Position(0, 0), b"start")
GIBIBYTE = 1 << 30


def one(seq: int, size: int) -> Entry:
    return Entry(Position(seq, 0), bytes(size), seq)


def test_a_refusal_is_told_until_a_write_is_kept_or_long_ago():
    now = 100.0
    refused = WriteRefusals(lambda: now)
    assert refused.recent() is None
    refused.record("full", "no room")
    now += 12
    assert refused.recent() == "a write was refused 12 s ago, and none has succeeded since: no room"
    now += RECENT_SECONDS - 11
    assert refused.recent() is None
    refused.record("full", "no room")
    refused.clear()
    assert refused.recent() is None


@pytest.mark.parametrize(("used", "limit", "share"), [(0, 0, 0.0), (5, 0, 0.0), (86, 100, 0.86), (100, 100, 1.0)])
def test_a_place_that_is_nearly_full_is_warned_of(used, limit, share):
    usage = Usage(used, limit)
    assert usage.share == share
    assert usage.warnings("the disk") == ([f"the disk is {share:.0%} full"] if share > 0.85 else [])


def test_the_fullest_primary_counts():
    full, roomy, boundless = ({"used_memory": used, "maxmemory": most} for used, most in ((9, 10), (90, 1000), (99, 0)))
    assert fullest([roomy, full, boundless]) == Usage(9, 10)
    assert fullest([boundless, boundless]) == Usage(99, 0)
    assert fullest([]) == Usage()


async def test_every_store_is_measured(store):
    usage = await store.usage()
    assert 0 <= usage.share < 1
    assert store.write_refusals.recent() is None


@pytest.fixture
async def sqlite_store(tmp_path):
    opened = SqliteStore(tmp_path / "itan.db")
    await opened.open()
    await opened.create("s", START)
    yield opened
    await opened.close()


async def test_the_files_of_sqlite_are_measured(sqlite_store, tmp_path):
    await sqlite_store.append("s", Position(0, 0), one(1, 100_000))
    usage = await sqlite_store.usage()
    assert usage.database_bytes == (tmp_path / "itan.db").stat().st_size
    assert usage.wal_bytes == (tmp_path / "itan.db-wal").stat().st_size > 100_000
    assert 0 < usage.used_bytes < usage.limit_bytes


@pytest.mark.parametrize(("free", "warns"), [(0.5, False), (0.1, True)])
async def test_a_disk_that_fills_up_is_warned_of(sqlite_store, monkeypatch, free, warns):
    class Disk:
        f_blocks, f_frsize, f_bavail = 1000, 4096, int(1000 * free)

    monkeypatch.setattr("os.statvfs", lambda _: Disk)
    assert any("90% full" in warning for warning in await sqlite_store.check()) is warns


async def test_the_longest_file_that_may_be_written_counts_as_the_disk(sqlite_store, monkeypatch):
    monkeypatch.setattr("resource.getrlimit", lambda _: (20_000, 20_000))
    await sqlite_store.append("s", Position(0, 0), one(1, 50_000))
    assert (await sqlite_store.usage()).limit_bytes == 20_000
    assert "full" in (await sqlite_store.check())[0]


async def test_a_full_sqlite_file_is_told_until_something_fits(sqlite_store):
    causes: list[str] = []
    sqlite_store.write_refusals.on_refusal = causes.append
    await sqlite_store.create("filler", Snapshot(Position(0, 0), bytes(400_000)))
    await set_pragma(sqlite_store, "max_page_count = 150")
    with pytest.raises(StoreUnavailable):
        await sqlite_store.append("s", Position(0, 0), one(1, 300_000))
    assert causes == ["full"]
    assert "database or disk is full" in sqlite_store.write_refusals.recent()
    await sqlite_store.delete("filler")
    assert sqlite_store.write_refusals.recent() is not None  # nothing was added yet
    await sqlite_store.append("s", Position(0, 0), one(1, 300_000))
    assert sqlite_store.write_refusals.recent() is None


async def test_a_full_redis_is_told_until_something_fits(own_server):
    store = RedisStore(own_server.url)
    await store.open()
    await store.create("s", START)
    causes: list[str] = []
    store.write_refusals.on_refusal = causes.append
    with own_server.admin() as admin:
        admin.config_set("maxmemory", 1)
        for _ in range(2):
            with pytest.raises(StoreUnavailable) as caught:
                await store.append("s", Position(0, 0), one(1, 100))
            assert caught.value.cause is Cause.FULL
            await store.save_snapshot("s", START, 0)  # it passes, and says nothing of what adds
            assert "OOM" in store.write_refusals.recent()
        assert any("maxmemory is" in warning for warning in await store.check())
        usage = await store.usage()
        assert usage.share > 1
        admin.config_set("maxmemory", GIBIBYTE)
    await store.append("s", Position(0, 0), one(1, 100))
    assert store.write_refusals.recent() is None
    assert causes == ["full", "full"]
    assert (await store.usage()).limit_bytes == GIBIBYTE
    await store.close()


async def test_a_replica_takes_no_writes(own_server):
    store = RedisStore(own_server.url)
    await store.open()
    await store.create("s", START)
    with own_server.admin() as admin:
        admin.replicaof("127.0.0.1", 1)
        with pytest.raises(StoreUnavailable) as caught:
            await store.append("s", Position(0, 0), one(1, 100))
        assert caught.value.cause is Cause.READ_ONLY
        admin.replicaof("NO", "ONE")
    await store.close()


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("OOM command not allowed when used memory > 'maxmemory'.", Cause.FULL),
        ("MISCONF Errors writing to the AOF file: No space left on device", Cause.FAILED),
        ("READONLY You can't write against a read only replica.", Cause.READ_ONLY),
        ("LOADING Redis is loading the dataset in memory", Cause.UNREACHABLE),
    ],
)
def test_what_a_server_says_has_a_cause(said, cause):
    assert wrap_error(ResponseError(said)).cause is cause
