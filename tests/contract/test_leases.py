"""What every store that many can write to promises: one writer at a time, by a lease, and for sure by its token."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from app.storage import Entry, Fenced, LeaseHeld, Position, Snapshot, StaleWriter, Store, StoredBlock, open_store
from app.storage.memory import MemoryStore
from tests.contract.conftest import KINDS

START = Snapshot(Position(0, 0), b"start")
SHARED = [kind for kind in KINDS if kind != "sqlite"]
LONG, SHORT = 60.0, 0.1


BLOCK = StoredBlock(Position(0, 0), Position(1, 0), 1, b"block")


def one(seq: int, body: bytes = b"body") -> Entry:
    return Entry(Position(seq, 0), body, seq, (f"id {seq}",))


@pytest.fixture(params=SHARED)
def store_url(request: pytest.FixtureRequest, empty_server) -> str:
    return "memory://" if request.param == "memory" else empty_server(request.param).url


@pytest.fixture
async def streams(store: Store) -> Store:
    """The store, with a stream "s" that has one entry."""
    await store.create("s", START)
    await store.append("s", Position(0, 0), one(1), {1: b"label"})
    return store


async def everything(store: Store) -> tuple:
    return (
        await store.load("s"),
        await store.entries("s", Position(0, 0), 99),
        await store.find_ids("s", ["id 1", "id 2"]),
        await store.find_labels("s", [1, 2]),
    )


async def insist(call: Callable[[], Awaitable[int]]) -> int:
    """Try until the lease of another has ended."""
    for _ in range(1000):
        try:
            return await call()
        except LeaseHeld:
            await asyncio.sleep(0.01)
    raise AssertionError("the lease never ends")


async def test_one_holder_at_a_time(streams):
    token = await streams.acquire("s", "a", LONG)
    assert token > 0
    with pytest.raises(LeaseHeld) as caught:
        await streams.acquire("s", "b", LONG)
    assert caught.value.stream == "s"
    assert 0 < caught.value.seconds <= LONG
    await streams.append("s", Position(1, 0), one(2), {}, token)
    assert await streams.acquire("t", "b", LONG) > 0


async def test_of_many_that_come_at_once_one_gets_it(streams):
    calls = (streams.acquire("s", f"w{number}", LONG) for number in range(20))
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(outcome, int) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, LeaseHeld) for outcome in outcomes) == 19


async def test_tokens_rise_and_an_owner_gets_its_own_back_at_once(streams):
    tokens = [await streams.acquire("s", "a", LONG) for _ in range(3)]
    await streams.release({"s": tokens[-1]})
    tokens.append(await streams.acquire("s", "b", SHORT))
    tokens.append(await insist(lambda: streams.acquire("s", "c", LONG)))
    assert tokens == sorted(set(tokens))


async def test_a_stream_that_was_deleted_begins_with_a_higher_token(streams):
    before = await streams.acquire("s", "a", LONG)
    assert await streams.delete("s", before)
    after = await streams.acquire("s", "b", LONG)  # the lease went with the stream
    assert after > before
    with pytest.raises(Fenced):
        await streams.create("s", START, before)
    assert await streams.create("s", START, after)
    with pytest.raises(Fenced):
        await streams.append("s", Position(0, 0), one(1), {}, before)


@pytest.mark.parametrize("verb", ["append", "repeat", "save_snapshot", "compact", "replace", "restore", "delete"])
async def test_a_lower_token_changes_nothing(streams, verb):
    old = await streams.acquire("s", "a", SHORT)
    new = await insist(lambda: streams.acquire("s", "b", LONG))
    calls = {
        "append": lambda token: streams.append("s", Position(1, 0), one(2), {1: b"new"}, token),
        "repeat": lambda token: streams.append("s", Position(0, 0), one(1), {}, token),
        "save_snapshot": lambda token: streams.save_snapshot("s", Snapshot(Position(1, 0), b"new"), 2, token),
        "compact": lambda token: streams.compact("s", BLOCK, {0: b"bucket"}, token),
        "restore": lambda token: streams.restore("s", Snapshot(Position(1, 1), b"new"), token),
        "replace": lambda token: streams.replace("s", Position(1, 0), Snapshot(Position(1, 1), b"new"), token),
        "delete": lambda token: streams.delete("s", token),
    }
    before = await everything(streams)
    for token in (0, old):
        with pytest.raises(Fenced) as caught:
            await calls[verb](token)
        assert (caught.value.token, caught.value.newest) == (token, new)
    assert await everything(streams) == before
    await calls[verb](new)


async def test_the_token_outlives_the_lease_and_the_reset(streams):
    old = await streams.acquire("s", "a", SHORT)
    new = await insist(lambda: streams.acquire("s", "b", SHORT))
    await streams.release({"s": new})
    await streams.replace("s", Position(1, 0), Snapshot(Position(1, 1), b"reset"), new)
    with pytest.raises(Fenced):
        await streams.append("s", Position(1, 1), one(2), {}, old)
    await streams.append("s", Position(1, 1), one(2), {}, new)


async def test_a_stale_position_is_refused_also_with_the_newest_token(streams):
    token = await streams.acquire("s", "a", LONG)
    with pytest.raises(StaleWriter):
        await streams.append("s", Position(0, 0), one(1, b"other"), {}, token)


async def test_renewal_keeps_others_out_and_names_what_is_lost(streams):
    tokens = {name: await streams.acquire(name, "a", SHORT) for name in ("s", "t", "u")}
    assert await streams.renew("a", tokens, LONG) == set()
    with pytest.raises(LeaseHeld) as caught:
        await streams.acquire("s", "b", LONG)
    assert caught.value.seconds > 1
    await streams.release({"t": tokens["t"]})
    taken = await streams.acquire("t", "b", LONG)
    assert await streams.renew("a", tokens, LONG) == {"t"}
    assert await streams.renew("b", {"t": taken}, LONG) == set()


async def seen_to_end(store: Store, stream: str, owner: str) -> int:
    """Lease a stream, and return when the lease has ended: one taken later by another has."""
    token = await store.acquire(stream, owner, SHORT)
    await store.acquire("gauge", owner, SHORT)
    await insist(lambda: store.acquire("gauge", "another", SHORT))
    return token


@pytest.mark.parametrize(("stream", "seq"), [("s", 1), ("unborn", 0)])
async def test_a_lease_that_ended_is_renewed_if_nobody_came(streams, stream, seq):
    token = await seen_to_end(streams, stream, "a")
    assert await streams.renew("a", {stream: token}, LONG) == set()
    with pytest.raises(LeaseHeld):
        await streams.acquire(stream, "b", LONG)
    await streams.create(stream, START, token)
    await streams.append(stream, Position(seq, 0), one(seq + 1), {}, token)


@pytest.mark.parametrize("stream", ["s", "unborn"])
async def test_a_lease_that_ended_is_lost_if_somebody_came(streams, stream):
    token = await seen_to_end(streams, stream, "a")
    other = await streams.acquire(stream, "b", SHORT)
    assert await streams.renew("a", {stream: token}, LONG) == {stream}
    await streams.create(stream, START, other)
    await streams.delete(stream, other)
    assert await streams.renew("a", {stream: token}, LONG) == {stream}


async def test_a_lease_that_ended_keeps_nobody_out(streams):
    await seen_to_end(streams, "unborn", "a")
    assert await streams.acquire("unborn", "b", LONG) > 0


async def test_many_leases_are_renewed_and_released_together(streams):
    names = [f"n{number}" for number in range(600)]
    tokens = dict(zip(names, await asyncio.gather(*(streams.acquire(name, "a", LONG) for name in names)), strict=True))
    wrong = dict.fromkeys(names[::3], 0)
    assert await streams.renew("a", tokens | wrong, LONG) == set(wrong)
    await streams.release(tokens | wrong)
    assert await streams.acquire("n1", "b", LONG) > 0
    with pytest.raises(LeaseHeld):
        await streams.acquire("n0", "b", LONG)
    assert await streams.renew("a", {}, LONG) == set()
    await streams.release({})


async def test_a_holder_finds_what_others_have_asked_it_for_once(streams):
    await streams.acquire("s", "a", LONG)
    with pytest.raises(LeaseHeld) as caught:
        await streams.acquire("s", "b", LONG)
    assert (caught.value.owner, caught.value.kept_seconds) == ("a", 0)
    assert await streams.wanted("a") == set()
    for stream in ("s", "t", "s"):
        await streams.ask(stream, "a")
    await streams.ask("s", "other {worker}: 1")
    assert await streams.wanted("a") == {"s", "t"}
    assert await streams.wanted("a") == set()
    assert await streams.wanted("other {worker}: 1") == {"s"}


async def test_a_holder_says_for_how_long_it_keeps_a_stream(streams):
    await streams.acquire("s", "a", LONG, 30.0)
    for _ in range(2):
        with pytest.raises(LeaseHeld) as caught:
            await streams.acquire("s", "b", LONG, 60.0)
        assert 20 < caught.value.kept_seconds <= 30
    await streams.acquire("s", "a", LONG, SHORT)
    await asyncio.sleep(2 * SHORT)
    with pytest.raises(LeaseHeld) as caught:
        await streams.acquire("s", "b", LONG)
    assert caught.value.kept_seconds == 0


async def test_a_late_release_does_not_free_the_successors_lease(streams):
    old = await streams.acquire("s", "a", SHORT)
    await insist(lambda: streams.acquire("s", "b", LONG))
    await streams.release({"s": old, "never": 7})
    with pytest.raises(LeaseHeld):
        await streams.acquire("s", "c", LONG)


async def test_a_lease_of_a_stream_that_does_not_exist_is_no_stream(store):
    token = await store.acquire("new", "a", LONG)
    assert await store.load("new") is None
    assert await store.streams("", 9) == []
    assert not await store.delete("new", token)
    with pytest.raises(Fenced):
        await store.create("new", START)
    assert await store.create("new", START, token)
    with pytest.raises(Fenced):
        await store.append("new", Position(0, 0), one(1))
    assert await store.delete("new", token)


async def test_a_store_of_one_process_grants_every_lease(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/itan.db")
    assert store.is_exclusive
    tokens = [await store.acquire("s", owner, LONG) for owner in "aba"]
    assert tokens == sorted(set(tokens))
    assert await store.renew("b", {"s": tokens[0]}, LONG) == set()
    await store.release({"s": tokens[0]})


@pytest.mark.parametrize(("passed", "is_over"), [(4.999, False), (5.0, True), (5.001, True)])
async def test_a_lease_in_memory_ends_when_its_time_has_passed(passed, is_over):
    clock = [0.0]
    store = MemoryStore(lambda: clock[0])
    await store.acquire("s", "a", 5.0)
    clock[0] = passed
    if is_over:
        assert await store.acquire("s", "b", 5.0)
    else:
        with pytest.raises(LeaseHeld):
            await store.acquire("s", "b", 5.0)
