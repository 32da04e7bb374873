"""GET /incidents: incidents of all streams that a key may read, newest first."""

from datetime import datetime, timedelta, timezone
from urllib.parse import quote

import pytest

from app.storage.memory import MemoryStore
from app.streams.views import incidents
from tests.app.harness import NOW, DisturbedStore, Service
from tests.app.incidents import begin, broken, ordinary


async def listed(service: Service, query: str = "") -> list[dict]:
    return (await service.accepted("GET", f"/incidents{query}"))["incidents"]


async def two_streams(service: Service) -> None:
    await begin(service, 300)
    await service.observe(ordinary(300), "web.t")
    service.clock.advance(60)
    await broken(service, 3)
    service.clock.advance(60)
    await service.observe([[9.0, 9.0]], "web.t")


async def test_incidents_are_listed_newest_first_and_chosen(service):
    await two_streams(service)
    newest, older = (await listed(service))[:2]
    assert [(one["stream"], one["state"], one["n_flagged"]) for one in (newest, older)] == [
        ("web.t", "open", 1),
        ("s", "open", 3),
    ]
    assert (newest["incident"], older["incident"]) == (301, 301)
    assert {one["stream"] for one in await listed(service, "?stream=s")} == {"s"}
    assert {one["stream"] for one in await listed(service, "?prefix=web.")} == {"web.t"}
    await service.feedback({"seq": 301, "anomaly": True})
    (confirmed,) = await listed(service, "?state=confirmed")
    assert confirmed["id"] == older["id"]
    assert confirmed["ended_at"] is None


async def test_pages_hold_each_incident_once(service):
    await two_streams(service)
    everything, after, found = await listed(service), "", []
    while True:
        page = await service.accepted("GET", f"/incidents?limit=1{after}")
        found += page["incidents"]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert found == everything
    assert len({one["id"] for one in found}) == len(found) >= 2


async def test_a_stream_that_was_deleted_has_no_incidents_and_a_new_one_has_others(service):
    await two_streams(service)
    (old, *_) = await listed(service, "?stream=web.t")
    await service.http.delete("/streams/web.t")
    assert await listed(service, "?stream=web.t") == []
    service.clock.advance(60)
    await service.observe([*ordinary(300), [9.0, 9.0]], "web.t")
    (new, *_) = await listed(service, "?stream=web.t")
    assert new["incident"] == old["incident"]
    assert new["id"] != old["id"]


async def test_a_key_sees_only_its_streams():
    async with Service(key="all", api_keys="all,web:read:web.*") as service:
        await two_streams(service)
        headers = {"Authorization": "Bearer web"}
        answer = await service.accepted("GET", "/incidents", headers=headers)
        assert {one["stream"] for one in answer["incidents"]} == {"web.t"}
        await service.refused("GET", "/incidents?stream=s", 403, "forbidden", headers=headers)


@pytest.mark.parametrize("query", ["", "&stream=web.t", "&prefix=web", "&state=open", "&state=confirmed"])
@pytest.mark.parametrize(("page", "most_read"), [(1, 1), (2, 1), (1000, 1), (1000, 1000)])
async def test_pages_name_no_stream_that_a_key_may_not_read(monkeypatch, query, page, most_read):
    monkeypatch.setattr(incidents, "PAGE", page)
    monkeypatch.setattr(incidents, "MOST_READ", most_read)
    async with Service(key="all", api_keys="all,web:read:web.*") as service:
        await two_streams(service)
        await broken(service, 3)
        hidden = await listed(service, "?stream=s")
        assert hidden
        expected = await listed(service, f"?stream=web.t{query if 'state' in query else ''}")
        after, found = "", []
        for _ in range(20):
            path = f"/incidents?limit=1{query}{after}"
            answer = await service.accepted("GET", path, headers={"Authorization": "Bearer web"})
            found += answer["incidents"]
            if answer["next"] is None:
                break
            assert answer["next"].startswith("web.t~")
            after = f"&after={answer['next']}"
        assert answer["next"] is None
        assert found == expected


@pytest.mark.parametrize(
    "query",
    ["state=over", "limit=0", "limit=201", "after=s", "after=s~1", "stream=..", "prefix=a%20b", "by=x"]
    + [f"{end}={text}" for end in ("from", "to") for text in ("x", "nan", "1e400", "5", "1800000000000", "2027-01-15")]
    + ["from=1800000002&to=1800000001"],
)
async def test_a_wrong_query_is_refused_by_name(service, query):
    answer = await service.http.get(f"/incidents?{query}")
    assert answer.status_code in (400, 422)
    assert answer.json()["field"] == query.partition("=")[0]


@pytest.mark.parametrize("public_url", ["", "https://itan.example.org/"])
async def test_an_incident_leads_to_the_live_page(public_url):
    async with Service(public_url=public_url) as service:
        await two_streams(service)
        (one,) = await listed(service, "?stream=web.t")
        assert one["url"] == f"{public_url.removesuffix('/')}/#/streams/web.t?incident={one['incident']}"


async def test_one_incident_is_as_the_list_has_it(service):
    await two_streams(service)
    for one in await listed(service):
        assert await service.accepted("GET", f"/incidents/{one['id']}") == one


@pytest.mark.parametrize("incident", ["s~301~1", "s~300~{opened}", "gone~301~{opened}", "301", "s~x~1", "~1~1", "s~1"])
async def test_an_incident_that_is_none_is_unknown(service, incident):
    await two_streams(service)
    opened = (await listed(service, "?stream=s"))[0]["id"].rpartition("~")[2]
    incident = incident.format(opened=opened)
    problem = await service.refused("GET", f"/incidents/{incident}", 404, "unknown_incident")
    assert (problem["field"], problem["value"]) == ("incident", incident)


async def test_a_key_cannot_find_out_whether_there_is_an_incident():
    async with Service(key="all", api_keys="all,web:read:web.*,writes:observe") as service:
        await two_streams(service)
        (there,) = await listed(service, "?stream=s")
        for key in ("web", "writes"):
            headers = {"Authorization": f"Bearer {key}"}
            answers = [
                await service.refused("GET", f"/incidents/{one}", 403, "forbidden", headers=headers)
                for one in (there["id"], "s~300~1", "gone~301~1")
            ]
            assert len({answer["detail"].replace("gone", "s") for answer in answers}) == 1
        await service.refused("GET", "/incidents/none", 403, "forbidden", headers={"Authorization": "Bearer writes"})
        web = {"Authorization": "Bearer web"}
        await service.refused("GET", "/incidents/none", 404, "unknown_incident", headers=web)


async def several(service):
    """Make an incident that is over, from NOW + 10 to NOW + 30, and one that goes on from NOW + 1000 on."""
    await service.accepted("PUT", "/streams/s", json={"n_features": 2})
    times = iter(range(int(NOW) - 300, int(NOW) + 10))
    service.clock.advance(2_000)
    await service.observe(ordinary(300), timestamps=[next(times) for _ in range(300)])
    await service.observe([[9.0, 9.0]] * 2, timestamps=[NOW + 10, NOW + 30])
    await service.observe(ordinary(20, seed=1), timestamps=[NOW + 40 + place for place in range(20)])
    await service.observe([[9.0, -9.0]], timestamps=[NOW + 1_000])
    assert [one["state"] for one in await listed(service)] == ["open", "closed"]


@pytest.mark.parametrize(
    ("first", "last", "found"),
    [
        (None, None, ["open", "closed"]),
        (None, 10, ["closed"]),
        (None, 9.5, []),
        (30, 31, ["closed"]),
        (31, 999, []),
        (31, 1_000, ["open"]),
        (1_500, None, ["open"]),
        (15, 20, ["closed"]),
        (0, 1_000, ["open", "closed"]),
    ],
)
async def test_incidents_are_chosen_by_time(service, first, last, found):
    await several(service)
    ends = [(name, NOW + end) for name, end in (("from", first), ("to", last)) if end is not None]
    for text in (repr, in_words):
        query = "&".join(f"{name}={text(end)}" for name, end in ends)
        assert [one["state"] for one in await listed(service, f"?{query}")] == found


def in_words(seconds):
    """Write a time with an offset that is not that of UTC."""
    return quote(datetime.fromtimestamp(seconds, timezone(timedelta(hours=2))).isoformat())


async def test_incidents_that_are_asked_for_rarely_are_read_together():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await begin(service, 300, incident_close_samples=1)
        for place in range(30):
            await service.observe([[9.0, 9.0], *ordinary(1, seed=place)])
        reads = []

        async def count():
            reads.append(1)

        store.before["find_incidents"] = count
        assert len(await listed(service)) >= 10
        assert await listed(service, "?state=confirmed") == []
        assert len(reads) == 2
