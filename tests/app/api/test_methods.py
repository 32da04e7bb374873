"""Which methods a path takes, and what becomes of all others."""

import pytest

from app.api.routing import Route
from app.main import ROUTES
from tests.app.harness import NOW, Service, blobs

PLACES = {
    "{stream}": "s",
    "{source}": "telegraf",
    "{rule}": "on-call",
    "{template}": "plants",
    "{window}": "deploy",
    "{seq}": "1",
    "{incident}": "s~101~1800000000000",
    "{file}": "app.js",
}
PATHS = sorted({route.path for route in ROUTES})
READ = [route for route in ROUTES if route.method == "GET"]
CHANGING = {"get_metrics", "get_overview"}
"""Their answers tell what a moment changes."""
QUERIES = {
    "/density": "?stream=s",
    "/density/grid": "?stream=s&x=0&y=1&size=4",
    "/streams/{stream}/band": "?feature=0&from=1800000000&to=1800086400",
}


def filled(path: str) -> str:
    """Put a value into each place of a path."""
    for place, value in PLACES.items():
        path = path.replace(place, value)
    return path


def methods_of(path: str) -> set[str]:
    """Give what any route takes at a path that is filled in: /streams/estimate is also a stream's."""
    found = {route.method for route in ROUTES if route.path_regex.match(filled(path))}
    return found | ({"HEAD"} if "GET" in found else set())


@pytest.mark.parametrize("path", PATHS)
async def test_a_method_that_a_path_does_not_take_is_told_all_that_it_takes(service: Service, path: str) -> None:
    taken = methods_of(path)
    for method in {"GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"} - taken:
        answer = await service.http.request(method, filled(path))
        assert answer.status_code == 405, (method, answer.text)
        assert answer.headers["allow"] == ", ".join(sorted(taken))
        problem = answer.json()
        assert (problem["code"], problem["value"]) == ("method_not_allowed", method)
        assert problem["limit"] == answer.headers["allow"]
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_path_of_several_routes_names_the_methods_of_all(service: Service) -> None:
    for path, allowed in {
        "/density": "GET, HEAD, POST",
        "/session": "DELETE, GET, HEAD, POST",
        "/streams/s": "DELETE, GET, HEAD, PATCH, PUT",
        "/streams/estimate": "DELETE, GET, HEAD, PATCH, POST, PUT",
    }.items():
        assert (await service.http.request("TRACE", path)).headers["allow"] == allowed


@pytest.mark.parametrize("route", READ, ids=lambda route: route.operation.id)
async def test_head_is_get_without_its_body(service: Service, route: Route) -> None:
    await service.observe(blobs(100))
    await service.observe([[60.0, -60.0]])
    await service.accepted("PUT", "/rules/on-call", json={"target": "chat", "url": "https://1.1.1.1/a-hook"})
    await service.accepted("PUT", "/templates/plants", json={"streams": "plant-*"})
    await service.accepted("PUT", "/windows/deploy", json={"streams": "web-*", "from": NOW, "to": NOW + 60})
    path = filled(route.path) + QUERIES.get(route.path, "")
    head = await service.http.head(path)
    assert (head.status_code, head.content) == (200, b"")
    if route.operation.id == "watch_stream":  # whose GET has no end
        assert head.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert "content-length" not in head.headers
        return
    got = await service.http.get(path)
    assert got.content
    changing = {"x-request-id"} | ({"content-length"} if route.operation.id in CHANGING else set())
    assert [line for line in head.headers.items() if line[0] not in changing] == [
        line for line in got.headers.items() if line[0] not in changing
    ]


async def test_head_is_refused_as_get_is(service: Service) -> None:
    for path, status in {"/streams/none": 404, "/streams/none/events": 404, "/density?stream=": 400}.items():
        head = await service.http.head(path)
        assert head.status_code == status
        assert head.headers["content-type"] == "application/problem+json"


async def test_head_counts_as_the_get_that_it_is(service: Service) -> None:
    await service.http.head("/streams")
    assert await service.metric("itan_requests_total", route="/streams", method="GET", status_class="2xx") == 1


async def test_head_of_events_takes_no_watchers_place(service: Service) -> None:
    await service.observe(blobs(1))
    for _ in range(3):
        assert (await service.http.head("/streams/s/events")).status_code == 200
    assert await service.metric("itan_watchers") == 0
