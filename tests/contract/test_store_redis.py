"""What the Redis store alone promises: it survives what a server can do to it."""

import asyncio
from collections.abc import Iterable
from itertools import count

import pytest
from redis import Redis
from redis.crc import key_slot
from redis.exceptions import ResponseError

from app.storage import Durability, Entry, Position, Snapshot, StoreCorrupt, StoreUnavailable, SummaryRow, open_store
from app.storage.redis import RedisStore
from app.streams.log import compaction
from app.streams.log.log import Hint, Log
from tests.servers import PROGRAMS, ClusterServers, RedisServer, ask, on_first_node, wait_until

START = Snapshot(Position(0, 0), b"start")
NAMES = [f"s{number}" for number in range(6)]
PARTLY = ("--cluster-require-full-coverage", "no")


def one(seq: int, body: bytes = b"body") -> Entry:
    return Entry(Position(seq, 0), body, seq, (f"id {seq}",))


@pytest.fixture(params=PROGRAMS)
def server(request, empty_server):
    return empty_server(request.param)


@pytest.fixture
def admin(server):
    """A plain connection, to do to the server what an operator might."""
    with Redis.from_url(server.url) as client:
        yield client


@pytest.fixture
async def redis_store(server):
    store = RedisStore(server.url)
    await store.open()
    await store.create("s", START)
    yield store
    await store.close()


async def append_many(store: RedisStore, names: list[str], seq: int) -> list[object]:
    calls = (store.append(name, Position(seq - 1, 0), one(seq)) for name in names)
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_scripts_that_the_server_forgot_run_once(redis_store, admin):
    names = [f"t{number}" for number in range(5)]
    for name in names:
        await redis_store.create(name, START)
    for seq in (1, 2, 3):
        admin.script_flush()
        assert await append_many(redis_store, names, seq) == [None] * 5
        admin.script_flush()
        assert [(await redis_store.size(name)).log_entries for name in names] == [seq] * 5


async def test_scripts_that_the_nodes_of_a_cluster_forgot_run_once(empty_server):
    cluster = empty_server("cluster")
    store = open_store(cluster.url)
    await store.open()
    names = [f"t{number}" for number in range(12)]
    await asyncio.gather(*(store.create(name, START) for name in names))
    for seq in (1, 2, 3):
        for node in cluster.servers[:seq]:
            with node.admin() as admin:
                admin.script_flush()
        assert await append_many(store, names, seq) == [None] * len(names)
        assert [(await store.size(name)).log_entries for name in names] == [seq] * len(names)
    await store.close()


async def test_a_stream_that_did_not_note_its_changes_counts_as_changed_now(redis_store, admin):
    await redis_store.create("s", Snapshot(Position(0, 0), b"start"))
    admin.hdel("itan:1:{s}:meta", "changed")
    assert (await redis_store.silences(["s"]))["s"].seconds == 0
    admin.hincrby("itan:1:{s}:meta", "changed", -60_000)
    assert 59 < (await redis_store.silences(["s"]))["s"].seconds < 120


async def test_what_a_stream_s_silence_cannot_be_read_of_is_left_out(redis_store, admin):
    for name in ("s", "t"):
        await redis_store.create(name, Snapshot(Position(0, 0), b"start"))
    admin.delete("itan:1:{s}:meta")
    admin.set("itan:1:{s}:meta", "no hash")
    assert set(await redis_store.silences(["s", "t"])) == {"t"}


async def test_waiting_appends_share_a_pipeline(redis_store, admin):
    names = [f"t{number}" for number in range(50)]
    await asyncio.gather(*(redis_store.create(name, START) for name in names))
    before = admin.info("clients")["connected_clients"]
    reads = admin.info("stats")["total_reads_processed"]
    assert await append_many(redis_store, names, 1) == [None] * 50
    assert admin.info("stats")["total_reads_processed"] - reads < 12
    assert admin.info("clients")["connected_clients"] <= before + 1


async def test_a_killed_server_is_unavailable_until_it_is_back(own_server):
    store = RedisStore(own_server.url)
    await store.open()
    await store.create("s", START)
    await store.append("s", Position(0, 0), one(1))
    for seq in (1, 2):
        own_server.kill()
        for call in (store.append("s", Position(seq, 0), one(seq + 1)), store.load("s"), store.check()):
            with pytest.raises(StoreUnavailable, match="Redis"):
                await call
        own_server.start()
        assert await store.load("s") == (START, Position(seq, 0))
        await store.append("s", Position(seq, 0), one(seq + 1))
    assert await store.entries("s", Position(0, 0), 9) == [one(1), one(2), one(3)]
    await store.close()


async def test_a_server_that_is_not_there_is_unavailable(unused_tcp_port):
    store = RedisStore(f"redis://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(StoreUnavailable, match="Redis"):
        await store.open()
    await store.close()


PARTS = ["meta", "snap", "log", "ids", "labels", "base"]


@pytest.mark.parametrize("part", [*PARTS, "lease"])
async def test_a_key_of_another_type_is_named_and_can_be_deleted(redis_store, admin, part):
    token = await redis_store.acquire("s", "a", 60)
    await redis_store.append("s", Position(0, 0), one(1), {1: b"label"}, token)
    await redis_store.save_snapshot("s", Snapshot(Position(1, 0), b"new"), 1, token)
    key = f"itan:1:{{s}}:{part}"
    admin.delete(key)
    (admin.set if part in ("meta", "log", "ids", "labels", "lease") else admin.sadd)(key, "foreign")
    remains = await redis_store.inspect("s")
    assert any(key in fault and "not" in fault for fault in remains.faults)
    failed = []
    for call in (
        lambda: redis_store.append("s", Position(1, 0), one(2), {2: b"label"}, token),
        lambda: redis_store.load("s"),
        lambda: redis_store.find_ids("s", ["id 1"]),
        lambda: redis_store.find_labels("s", [1]),
        lambda: redis_store.size("s"),
    ):
        try:
            await call()
        except StoreCorrupt as error:
            failed.append(error)
    assert bool(failed) is (part != "lease")
    assert all(error.stream == "s" and key in error.gap for error in failed)
    assert await redis_store.streams("", 9) == ["s"]
    newer = await redis_store.acquire("s", "a", 60)
    assert newer > token
    assert await redis_store.delete("s", newer)
    assert admin.keys("*{s}*") == []
    assert await redis_store.streams("", 9) == []


@pytest.mark.parametrize("part", PARTS)
async def test_restore_takes_the_place_of_whatever_is_there(redis_store, admin, part):
    await redis_store.append("s", Position(0, 0), one(1))
    key = f"itan:1:{{s}}:{part}"
    admin.delete(key)
    (admin.set if part in ("meta", "log", "ids", "labels") else admin.sadd)(key, "foreign")
    new = Snapshot(Position(1, 1), b"restored")
    await redis_store.restore("s", new, await redis_store.acquire("s", "a", 60))
    assert await redis_store.load("s") == (new, new.position)
    await redis_store.append("s", new.position, one(2), {}, 2**62)


async def test_a_lease_of_another_type_does_not_end_all_others(redis_store, admin):
    tokens = {name: await redis_store.acquire(name, "a", 60) for name in NAMES}
    admin.delete(f"itan:1:{{{NAMES[0]}}}:lease")
    admin.set(f"itan:1:{{{NAMES[0]}}}:lease", "foreign")
    assert await redis_store.renew("a", tokens, 60) == {NAMES[0]}
    await redis_store.release(tokens)
    assert admin.keys("*lease") == [f"itan:1:{{{NAMES[0]}}}:lease".encode()]


async def test_a_stream_without_its_head_is_listed_and_what_is_left_is_found(redis_store, admin):
    await redis_store.append("s", Position(0, 0), one(1))
    await redis_store.save_snapshot("s", Snapshot(Position(1, 0), b"new"), 1)
    admin.delete("itan:1:{s}:meta")
    assert await redis_store.streams("", 9) == ["s"]
    remains = await redis_store.inspect("s")
    assert (remains.head, remains.snapshot.body, remains.base.body) == (Position(1, 0), b"new", b"new")
    assert remains.faults == ("its head is missing",)


async def test_a_look_up_of_many_ids_knows_one_index(redis_store, monkeypatch):
    for seq in range(1, 82):
        await redis_store.append("s", Position(seq - 1, 0), one(seq))
    monkeypatch.setattr("app.storage.redis.reader.IDS_PER_STEP", 80)
    monkeypatch.setattr(compaction, "LEAST_SAMPLES", 20)
    monkeypatch.setattr(compaction, "MOST_SAMPLES", 20)
    await compaction.compact(redis_store, "s", Position(81, 0), 1)
    read, ids, sizes = redis_store._calls.read, [f"id {seq}" for seq in range(1, 82)], []

    async def read_then_compact(script: str, *given: object) -> list[object]:
        reply = await read(script, *given)
        if script == "find_ids" and given[1] == 80:
            sizes.append(reply[2])
            await compaction.compact(redis_store, "s", Position(81, 0), 1)
        return reply

    monkeypatch.setattr(redis_store._calls, "read", read_then_compact)
    found = await Log(redis_store, "s", hint=Hint(has_blocks=True)).find_ids(ids)
    assert found == {name: seq for seq, name in enumerate(ids, 1)}
    assert sizes[0] < sizes[1], "the index has grown in between"


async def fill_memory(store: RedisStore, admin: Redis) -> int:
    """Append until the server has no memory left; give the last seq that was taken."""
    admin.config_set("maxmemory", admin.info("memory")["used_memory"] + 3_000_000)
    with pytest.raises(StoreUnavailable, match="OOM"):
        await append_for_ever(store)
    admin.config_set("maxmemory", admin.info("memory")["used_memory"] - 500_000)  # buffers that go make no room
    return (await store.load("s"))[1].seq


async def append_for_ever(store: RedisStore) -> None:
    for seq in count():
        await store.append("s", Position(seq, 0), one(seq + 1, bytes(100_000)), {1: b"%d" % (seq + 1)})


@pytest.fixture
def limited_memory(admin):
    yield
    admin.config_set("maxmemory", 0)


async def test_a_full_server_changes_nothing_and_deletes(redis_store, admin, limited_memory):
    await redis_store.create("t", START)
    last = await fill_memory(redis_store, admin)
    assert await redis_store.load("s") == (START, Position(last, 0))
    assert (await redis_store.find_ids("s", [f"id {last + 1}"])).seqs == {}
    assert await redis_store.find_labels("s", [1]) == {1: b"%d" % last}
    with pytest.raises(StoreUnavailable, match="OOM"):
        await redis_store.create("u", START)
    assert await redis_store.delete("s")
    assert await redis_store.streams("", 9) == ["t"]
    await redis_store.append("t", Position(0, 0), one(1, bytes(100_000)))


async def test_a_full_server_trims_and_heals(redis_store, admin, limited_memory):
    last = await fill_memory(redis_store, admin)
    await redis_store.save_snapshot("s", Snapshot(Position(last, 0), b"all"), last)
    assert await redis_store.entries("s", Position(0, 0), 9) == [one(last, bytes(100_000))]
    assert await redis_store.load("s") == (Snapshot(Position(last, 0), b"all"), Position(last, 0))
    await redis_store.append("s", Position(last, 0), one(last + 1, bytes(100_000)))


async def test_a_full_server_resets_and_heals(redis_store, admin, limited_memory):
    last = await fill_memory(redis_store, admin)
    await redis_store.replace("s", Position(last, 0), Snapshot(Position(last, 1), b"reset"))
    await redis_store.append("s", Position(last, 1), one(last + 1, bytes(100_000)))


@pytest.mark.parametrize(
    ("keys", "gap"),
    [
        (["snap"], "snapshot at 1-0 is missing, its log is at 2-0"),
        (["log"], "log from the snapshot at 1-0 to the head at 2-0 is missing"),
        (["meta"], "head is missing"),
        (["meta", "snap"], "head is missing"),
        (["meta", "snap", "log", "ids"], "head is missing"),
        (["ids"], "id index has 0 entries where 2"),
        (["labels"], "label index has 0 entries where 1"),
    ],
)
async def test_what_was_evicted_is_named(redis_store, admin, keys, gap):
    await redis_store.append("s", Position(0, 0), one(1))
    await redis_store.append("s", Position(1, 0), one(2), {1: b"label"})
    await redis_store.save_snapshot("s", Snapshot(Position(1, 0), b"newer"), 0)
    admin.delete(*(f"itan:1:{{s}}:{key}" for key in keys))
    with pytest.raises(StoreCorrupt, match=gap):
        await redis_store.load("s")
    if "meta" in keys:
        with pytest.raises(StoreCorrupt, match="head is missing"):
            await redis_store.create("s", START)
    else:
        assert not await redis_store.create("s", START)
    assert await redis_store.delete("s")
    assert await redis_store.create("s", START)


async def test_a_log_that_went_while_it_was_written_is_noticed(redis_store, admin):
    await redis_store.append("s", Position(0, 0), one(1))
    await redis_store.save_snapshot("s", Snapshot(Position(1, 0), b"newer"), 0)
    admin.delete("itan:1:{s}:log")
    await redis_store.append("s", Position(1, 0), one(2))
    with pytest.raises(StoreCorrupt, match="log has 1 entries where 2 were written"):
        await redis_store.load("s")


async def test_a_listed_stream_that_was_never_made_is_left_out(redis_store, admin):
    admin.zadd("itan:1:streams", {"a": 0, "b": 0, "t": 0})
    await redis_store.create("z", START)
    assert await redis_store.streams("", 2) == ["s", "z"]
    assert await redis_store.streams("", 1) == ["s"]
    assert await redis_store.summaries("", 2) == [("s", None)]
    assert await redis_store.summaries("s", 1) == [("z", None)]


async def test_a_deletion_that_was_cut_short_leaves_nothing_in_lists(redis_store, monkeypatch):
    await redis_store.put_summaries([SummaryRow("s", b"of s", 2**53)])
    send = redis_store._calls.send

    async def die(word, *given):
        if word == "ZREM":
            raise StoreUnavailable("killed")
        return await send(word, *given)

    with monkeypatch.context() as patched:
        patched.setattr(redis_store._calls, "send", die)
        with pytest.raises(StoreUnavailable):
            await redis_store.delete("s")
    assert await redis_store.streams("", 10) == []
    assert await redis_store.summaries("", 10) == []


async def test_check_warns_of_settings_that_lose_streams(redis_store, admin):
    assert any("append-only" in warning for warning in await redis_store.check())
    assert not any("evict" in warning for warning in await redis_store.check())
    admin.config_set("maxmemory-policy", "allkeys-lru")
    try:
        assert any("allkeys-lru" in warning for warning in await redis_store.check())
    finally:
        admin.config_set("maxmemory-policy", "noeviction")


async def test_a_storm_of_cancelled_calls_leaves_every_answer_with_its_caller(redis_store):
    for name in "ab":
        await redis_store.create(name, Snapshot(Position(0, 0), name.encode()))
    calls = [asyncio.create_task(redis_store.load(name)) for _ in range(300) for name in "ab"]
    for turn, call in enumerate(calls):
        if turn % 3 == 0:
            call.cancel()
        if turn % 7 == 0:
            await asyncio.sleep(0)
    answers = await asyncio.gather(*calls, return_exceptions=True)
    for name, answer in zip("ab" * 300, answers, strict=True):
        assert isinstance(answer, asyncio.CancelledError) or answer[0].body == name.encode()
    for name in "ab" * 50:
        assert (await redis_store.load(name))[0].body == name.encode()


async def test_a_repeated_creation_is_known_by_its_token(redis_store, monkeypatch):
    class Token:
        hex = "the same call, sent again"

    monkeypatch.setattr("app.storage.redis.store.uuid4", Token)
    assert await redis_store.create("t", START)
    assert await redis_store.create("t", START)
    monkeypatch.undo()
    assert not await redis_store.create("t", START)


async def test_server_errors_are_sorted_into_passing_and_lasting():
    from app.storage.redis.errors import wrap_error

    for words in ("BUSY Redis is busy running a script", "MISCONF errors writing to the AOF file", "TRYAGAIN later"):
        assert isinstance(wrap_error(ResponseError(words)), StoreUnavailable)
    assert not isinstance(wrap_error(ResponseError("ERR unknown command")), StoreUnavailable)
    assert isinstance(wrap_error(TimeoutError()), StoreUnavailable)


async def test_a_stream_that_moves_to_another_node_goes_on(tmp_path):
    cluster = ClusterServers(PROGRAMS["valkey"](), tmp_path, "--appendonly", "yes")
    cluster.start()
    store = open_store(cluster.url, Durability.FSYNC)
    await store.open()
    for name in NAMES:
        await store.create(name, START)
    assert await append_many(store, NAMES, 1) == [None] * len(NAMES)
    move_streams(*cluster.servers[:2], on_first_node(NAMES))
    assert await append_many(store, NAMES, 2) == [None] * len(NAMES)
    assert [(await store.load(name))[1] for name in NAMES] == [Position(2, 0)] * len(NAMES)
    await store.close()
    cluster.kill()


def move_streams(source: RedisServer, target: RedisServer, names: Iterable[str]) -> None:
    """Let another node of a cluster have some streams, as an operator would who moves slots."""
    for name in names:
        slot = key_slot(name.encode())
        ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", ask(source, "CLUSTER", "MYID"))
        ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", ask(target, "CLUSTER", "MYID"))
        keys = ask(source, "CLUSTER", "GETKEYSINSLOT", slot, 100)
        ask(source, "MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        for server in (target, source):
            ask(server, "CLUSTER", "SETSLOT", slot, "NODE", ask(target, "CLUSTER", "MYID"))


@pytest.mark.parametrize("durability", [Durability.PROCESS, Durability.FSYNC])
async def test_a_store_opens_though_the_first_node_of_its_url_is_dead(tmp_path, durability):
    cluster = ClusterServers(PROGRAMS["valkey"](), tmp_path, "--appendonly", "yes", *PARTLY)
    cluster.start()
    cluster.servers[0].kill()
    store = open_store(cluster.url, durability)
    await store.open()
    answers = await asyncio.gather(*(store.load(name) for name in NAMES), return_exceptions=True)
    for name, answer in zip(NAMES, answers, strict=True):
        assert isinstance(answer, StoreUnavailable) if name in on_first_node(NAMES) else answer is None
    await store.close()
    cluster.kill()


async def test_a_dead_node_takes_only_its_own_streams_along(tmp_path):
    cluster = ClusterServers(PROGRAMS["valkey"](), tmp_path, "--appendonly", "yes", "--appendfsync", "always", *PARTLY)
    cluster.start()
    victim = cluster.servers[0]
    store = open_store(cluster.url)
    await store.open()
    hit = on_first_node(NAMES)
    assert 0 < len(hit) < 6
    for name in NAMES:
        await store.create(name, START)
    victim.kill()
    for seq in (1, 2):
        for name, answer in zip(NAMES, await append_many(store, NAMES, seq), strict=True):
            assert isinstance(answer, StoreUnavailable) if name in hit else answer is None
    victim.start()
    wait_until(lambda: b"cluster_state:ok" in bytes(ask(victim, "CLUSTER", "INFO")))
    for name in hit:
        await store.append(name, Position(0, 0), one(1))
    await store.close()
    cluster.kill()
