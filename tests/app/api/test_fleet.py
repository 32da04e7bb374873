"""GET /streams in all orders, and GET /overview: by summaries, for those streams alone that the key may read."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from app.storage import StoreUnavailable, SummaryRow
from app.storage.memory import MemoryStore
from app.streams.maintenance.summarizer import Summarizer
from app.streams.open.summary import Summary, read_summary
from tests.app.harness import NOW, DisturbedStore, Service, blobs, raising, until

HOUR = int(NOW // 3600)
ORDERS = ["name", "flagged", "incidents", "silent", "review", "warming_up"]
STREAMS = {
    "a-1": {"flags": ((HOUR, 3), (HOUR - 23, 2), (HOUR - 24, 90)), "to_review": 2, "written_at": NOW - 9_000},
    "a-2": {"flags": ((HOUR - 1, 9),), "incident": 7, "incident_severity": 3.5, "written_at": NOW - 10},
    "a-3": {"ready": False, "samples_needed": 40, "written_at": NOW - 20},
    "b": {"flags": ((HOUR + 1, 7),), "incident": 4, "incident_severity": 8.0, "to_review": 1, "written_at": NOW - 30},
    "b.x": {"ready": False, "samples_needed": 90, "written_at": NOW - 86_400},
    "c:d.1": {"written_at": NOW - 5},
    "c:d.2": {"written_at": NOW - 4, "to_review": 2},
}
IN_ORDER = {
    "flagged": ["a-2", "a-1", "a-3", "b", "b.x", "c:d.1", "c:d.2", "e"],
    "incidents": ["b", "a-2", "a-1", "a-3", "b.x", "c:d.1", "c:d.2", "e"],
    "silent": ["b.x", "a-1", "b", "a-3", "a-2", "c:d.1", "c:d.2", "e"],
    "review": ["a-1", "c:d.2", "b", "a-2", "a-3", "b.x", "c:d.1", "e"],
    "warming_up": ["b.x", "a-3", "a-1", "a-2", "b", "c:d.1", "c:d.2", "e"],
    "name": [*STREAMS, "e"],
}


def summary(stream: str, **known) -> Summary:
    ordinary = {"n_seen": 100, "ready": True, "samples_needed": 0, "to_review": 0, "labels": 2, "flags": ()}
    return Summary(stream=stream, **(ordinary | known))


@pytest.fixture(scope="module")
def stored() -> Iterator[MemoryStore]:
    """Streams that are in no memory, with summaries; but of e only the name is known."""
    store = MemoryStore()

    async def fill() -> None:
        async with Service(store) as service:
            for stream in [*STREAMS, "e"]:
                await service.accepted("PUT", f"/streams/{stream}", json={"n_features": 2})

    asyncio.run(fill())
    return store


@pytest.fixture
async def fleet(stored: MemoryStore) -> AsyncIterator[Service]:
    rows = [SummaryRow(name, summary(name, **known).to_bytes(), 2**53) for name, known in STREAMS.items()]
    await stored.put_summaries(rows)
    stored.stored["e"].summary = None
    async with Service(stored) as service:
        yield service
    assert not service.registry.sessions


async def listed(service: Service, query: str, limit: int = 100, **given) -> list[str]:
    """Names of all pages, each read from the place that the one before gives."""
    found, after = [], ""
    while after is not None:
        page = await service.accepted("GET", f"/streams?{query}&limit={limit}&after={after}", **given)
        assert len(page["streams"]) == limit or page["next"] is None
        found += [entry["stream"] for entry in page["streams"]]
        after = page["next"]
    return found


@pytest.mark.parametrize("order", ORDERS)
async def test_pages_of_any_size_are_in_order(fleet, order):
    for limit in (1, 3, 100):
        assert await listed(fleet, f"order={order}", limit) == IN_ORDER[order]
    assert await listed(fleet, f"order={order}&prefix=a-", 2) == [name for name in IN_ORDER[order] if name[:2] == "a-"]
    assert await listed(fleet, f"order={order}&prefix=b", 1) == [name for name in IN_ORDER[order] if name[0] == "b"]
    assert await listed(fleet, f"order={order}&search=.X") == ["b.x"]
    assert await listed(fleet, f"order={order}&search=d.&prefix=a") == []


@pytest.mark.parametrize("order", ORDERS)
async def test_a_stream_that_changes_may_move_but_no_other_is_lost_or_repeated(fleet, order):
    half = await fleet.accepted("GET", f"/streams?order={order}&limit=4")
    seen = [entry["stream"] for entry in half["streams"]]
    changed = [
        summary("a-1", written_at=NOW, samples_needed=99, ready=False),
        summary("c:d.2", written_at=NOW - 99_999, flags=((HOUR, 99),), incident=3, incident_severity=20.0),
    ]
    await fleet.store.put_summaries([SummaryRow(one.stream, one.to_bytes(), 2**53) for one in changed])
    fleet.clock.advance(60)
    rest = await fleet.accepted("GET", f"/streams?order={order}&limit=100&after={half['next']}")
    seen += [entry["stream"] for entry in rest["streams"]]
    others = [name for name in seen if name not in ("a-1", "c:d.2")]
    assert others == [name for name in IN_ORDER[order] if name not in ("a-1", "c:d.2")]


async def test_the_overview_sums_up_what_is_known(fleet):
    said = await fleet.accepted("GET", "/overview")
    counts = {"streams": 8, "unknown": 1, "unreadable": 0, "warming_up": 2, "silent": 2, "open_incidents": 2}
    assert said.items() >= (counts | {"flagged_lately": 14, "to_review": 5, "samples": 700, "labels": 14}).items()
    assert said["begin"] == [3600.0 * (HOUR - 23 + hour) for hour in range(24)]
    assert said["flags_by_hour"] == [2, *[0] * 21, 9, 3]
    assert [(group["prefix"], group["streams"]) for group in said["groups"]] == [("a-", 3), ("c:d.", 2)]
    assert [one["stream"] for one in said["incidents"]] == ["b", "a-2"]
    assert [(one["stream"], one["to_review"]) for one in said["review"]] == [("a-1", 2), ("c:d.2", 2), ("b", 1)]
    assert (await fleet.accepted("GET", "/overview?silent_seconds=20"))["silent"] == 4
    within = await fleet.accepted("GET", "/overview?prefix=a-")
    assert (within["streams"], within["groups"], within["flagged_lately"]) == (3, [], 14)


async def test_of_other_streams_nothing_is_told(stored):
    async with Service(stored, api_keys="all,some:read:a*,none:read:zz*,writer:observe") as service:
        await stored.put_summaries([SummaryRow(n, summary(n, **k).to_bytes(), 2**53) for n, k in STREAMS.items()])
        for order in ORDERS:
            some = await listed(service, f"order={order}", 1, headers={"X-API-Key": "some"})
            assert some == [name for name in IN_ORDER[order] if name.startswith("a")]
            assert await listed(service, f"order={order}", headers={"X-API-Key": "none"}) == []
        said = await service.accepted("GET", "/overview", headers={"X-API-Key": "some"})
        assert (said["streams"], said["flagged_lately"], said["open_incidents"]) == (3, 14, 1)
        assert not {"b", "c:d.1", "e"} & {one["stream"] for one in said["incidents"] + said["review"]}
        assert [group["prefix"] for group in said["groups"]] == ["a-"]
        nothing = await service.accepted("GET", "/overview", headers={"X-API-Key": "none"})
        assert (nothing["streams"], nothing["unknown"], sum(nothing["flags_by_hour"])) == (0, 0, 0)
        await service.refused("GET", "/overview", 403, "forbidden", headers={"X-API-Key": "writer"})


async def test_details_come_from_the_summaries_and_the_unknown_is_null(fleet):
    page = await fleet.accepted("GET", "/streams?order=flagged&details=true")
    first, last = page["streams"][0], page["streams"][-1]
    assert (first["stream"], first["flagged_lately"], first["incident"], first["n_seen"]) == ("a-2", 9, 7, 100)
    assert first["flags_by_hour"] == [*[0] * 22, 9, 0]
    assert (last["stream"], last["n_seen"], last["to_review"]) == ("e", 0, 0)  # read for this page
    assert (await fleet.accepted("GET", "/overview"))["unknown"] == 1
    fleet.clock.advance(60)
    assert (await fleet.accepted("GET", "/overview"))["unknown"] == 0


async def test_streams_without_a_summary_are_described_in_the_background_once_somebody_asks(fleet):
    await fleet.accepted("GET", "/overview")
    await fleet.app.state.service.catalog.fleet.fill()
    fleet.clock.advance(60)
    assert (await fleet.accepted("GET", "/overview"))["unknown"] == 0
    described = read_summary("e", (await fleet.store.find_summaries(["e"]))["e"])
    assert described.ready is False
    assert described.written_at is not None  # else it would come last where silent streams come first


async def test_the_background_describes_no_more_than_its_time_allows(monkeypatch, fleet):
    await fleet.accepted("GET", "/overview")
    for seconds, unknown in ((0.0, 1), (60.0, 0)):
        monkeypatch.setattr("app.streams.views.fleet.FILL_SECONDS", seconds)
        await fleet.app.state.service.catalog.fleet.fill()
        fleet.clock.advance(60)
        assert (await fleet.accepted("GET", "/overview"))["unknown"] == unknown


async def test_many_without_a_summary_are_listed_by_name(monkeypatch, stored):
    monkeypatch.setattr("app.streams.views.overview.MOST_READ", 2)
    for one in stored.stored.values():
        one.summary = None
    async with Service(stored) as service:
        page = await service.accepted("GET", "/streams?details=true")
    assert [entry["n_seen"] for entry in page["streams"]] == [0, 0, *[None] * 6]
    assert page["streams"][-1]["flags_by_hour"] is page["streams"][-1]["to_review"] is None


async def test_a_summary_of_another_version_counts_as_missing(fleet):
    await fleet.store.put_summaries([SummaryRow("a-1", msgspec.msgpack.encode([2, "a-1"]), 2**53)])
    assert (await fleet.accepted("GET", "/overview"))["unknown"] == 2


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("order=size", "order"),
        ("order=flagged&after=a-1", "after"),
        ("order=flagged&after=1.5~a", "after"),
        ("prefix=a*", "prefix"),
        ("search=%2F", "search"),
    ],
)
async def test_what_cannot_be_listed_is_refused(fleet, query, field):
    problem = await fleet.refused("GET", f"/streams?{query}", 400, "invalid_query")
    assert problem["field"] == field


async def test_a_place_of_an_order_is_none_by_name(fleet):
    problem = await fleet.refused("GET", "/streams?after=0~a", 400, "invalid_stream_id")
    assert problem["field"] == "after"


async def test_the_store_gets_the_summaries_of_many_streams_in_one_call():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        for stream in ("a", "b", "c"):
            await service.observe(blobs(3), stream)
        calls = []

        async def count() -> None:
            calls.append(1)

        store.before["put_summaries"] = count
        sessions = service.registry.sessions
        await service.registry.summaries.write(sessions.values())
        await service.registry.summaries.write(sessions.values())
        assert len(calls) == 1
        assert [read_summary(*row).n_seen for row in await store.summaries("", 9)] == [3, 3, 3]


async def test_a_store_that_takes_no_summary_disturbs_nothing_and_gets_it_later(caplog):
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(blobs(3))
        store.before["put_summaries"] = raising(StoreUnavailable("full"))
        for _ in range(2):
            await service.registry.summaries.write(service.registry.sessions.values())
        assert caplog.text.count("summaries of streams not stored: full") == 1
        assert (await service.accepted("GET", "/streams?details=true"))["streams"][0]["n_seen"] == 3
        await service.registry.save(service.registry.sessions["s"], closing="idle")
        assert not service.registry.sessions
        assert (await service.accepted("GET", "/streams?details=true"))["streams"][0]["n_seen"] == 3
        await service.observe(blobs(1))
        del store.before["put_summaries"]
        await service.registry.summaries.write(service.registry.sessions.values())
        assert read_summary("s", (await store.find_summaries(["s"]))["s"]).n_seen == 4


async def test_summaries_whose_write_is_interrupted_are_stored_at_the_end():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(blobs(3))
        writing = asyncio.Event()

        async def hang() -> None:
            writing.set()
            await asyncio.Event().wait()

        store.before["put_summaries"] = hang
        task = asyncio.create_task(service.registry.summaries.write(service.registry.sessions.values()))
        await writing.wait()
        task.cancel()
        await asyncio.wait([task])
        del store.before["put_summaries"]
    assert read_summary("s", (await store.find_summaries(["s"]))["s"]).n_seen == 3


async def test_an_unexpected_failure_of_the_store_does_not_end_the_shutdown(caplog):
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(blobs(3))
        store.before["put_summaries"] = raising(RuntimeError("odd"))
        for _ in range(3):
            await service.registry.summaries.write(service.registry.sessions.values())
    assert caplog.text.count("summaries of streams not stored: odd") == 1
    assert (await store.load("s"))[0].position.seq == 3


async def test_the_background_goes_on_after_a_stream_that_cannot_be_described(monkeypatch):
    async with Service() as service:
        tries = []

        async def fill() -> None:
            tries.append(1)
            raise RuntimeError("odd")

        monkeypatch.setattr(service.clock, "sleep", lambda _: asyncio.sleep(0))
        summarizer = Summarizer(service.registry, fill)
        summarizer.start()
        await until(lambda: len(tries) == 2)
        await summarizer.stop()


async def test_while_the_store_is_away_a_round_asks_it_once(monkeypatch):
    monkeypatch.setattr("app.streams.open.summary_writer.AT_ONCE", 1)
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        for stream in ("a", "b", "c"):
            await service.observe(blobs(1), stream)
        asked = []

        async def refuse() -> None:
            asked.append(1)
            raise StoreUnavailable("away")

        store.before["put_summaries"] = refuse
        await service.registry.summaries.write(service.registry.sessions.values())
        assert len(asked) == 1
        del store.before["put_summaries"]
        await service.registry.summaries.write(service.registry.sessions.values())
    assert (await store.find_summaries(["a", "b", "c"])).keys() == {"a", "b", "c"}


@pytest.mark.parametrize("end", ["reset", "import", "delete", "create"])
async def test_a_summary_is_of_the_stream_that_is_there(end):
    async with Service() as service:
        await service.observe(blobs(60))
        await service.registry.summaries.write(service.registry.sessions.values())
        exported = await service.export()
        if end == "reset":
            await service.accepted("POST", "/streams/s/reset")
        elif end == "import":
            kind = {"Content-Type": "application/octet-stream"}
            await service.accepted("PUT", "/streams/s/import", content=exported, headers=kind)
        else:
            await service.http.delete("/streams/s")
        if end == "create":
            await service.accepted("PUT", "/streams/s", json={"n_features": 2})
        assert await service.store.find_summaries(["s"]) == {}
        service.clock.advance(60)
        n_seen = {"reset": [0], "import": [60], "delete": [], "create": [0]}[end]
        for order in ("name", "silent"):
            page = await service.accepted("GET", f"/streams?details=true&order={order}")
            assert [one["n_seen"] for one in page["streams"]] == n_seen
        assert (await service.accepted("GET", "/overview"))["samples"] == sum(n_seen)
