"""GET /incidents: incidents of all streams that a key may read, newest first."""

import pytest

from app.streams.views import incidents
from tests.app.harness import Service
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
    "query", ["state=over", "limit=0", "limit=201", "after=s", "after=s~1", "stream=..", "prefix=a%20b", "from=x"]
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
        assert one["url"] == f"{public_url.removesuffix('/')}/#/streams/web.t"
