import itertools
import json
from fnmatch import fnmatchcase

import pytest

from app.main import ROUTES as SERVED
from app.security import COOKIE, CSRF_HEADER, InvalidKeys, KeyRing, Scope
from app.security.grants import digest_of
from tests.app.harness import Service

KEYS = "all,r:read,o:observe,l:label,a:admin,m:metrics,ro:read+observe:plant-*,one:read+observe+label:plant-1"

ROUTES = {
    ("POST", "/observe?stream={s}"): Scope.OBSERVE,
    ("POST", "/observe?stream={s}&learn=false"): Scope.READ,
    ("POST", "/feedback?stream={s}"): Scope.LABEL,
    ("POST", "/feedback?stream={s}&dry_run=true"): Scope.LABEL,
    ("POST", "/density?stream={s}"): Scope.READ,
    ("GET", "/density?stream={s}"): Scope.READ,
    ("GET", "/density/grid?stream={s}&x=0&y=1"): Scope.READ,
    ("GET", "/incidents/{s}~1~1"): Scope.READ,
    ("POST", "/incidents/{s}~1~1/label"): Scope.LABEL,
    ("POST", "/incidents/{s}~1~1/label?dry_run=true"): Scope.LABEL,
    ("GET", "/streams/{s}/history"): Scope.READ,
    ("GET", "/streams/{s}/samples/1"): Scope.READ,
    ("GET", "/streams/{s}/review"): Scope.READ,
    ("GET", "/streams/{s}/events"): Scope.READ,
    ("GET", "/streams/{s}/check"): Scope.READ,
    ("GET", "/streams/{s}/band?feature=0&from=1800000000&to=1800086400"): Scope.READ,
    ("POST", "/streams/{s}/repair"): Scope.ADMIN,
    ("POST", "/streams/{s}/accept"): Scope.ADMIN,
    ("PUT", "/streams/{s}"): Scope.ADMIN,
    ("GET", "/streams/{s}"): Scope.READ,
    ("PATCH", "/streams/{s}"): Scope.ADMIN,
    ("POST", "/streams/{s}/clone?to={s}"): Scope.ADMIN,
    ("DELETE", "/streams/{s}"): Scope.ADMIN,
    ("POST", "/streams/{s}/reset"): Scope.ADMIN,
    ("GET", "/streams/{s}/export"): Scope.READ,
    ("PUT", "/streams/{s}/import"): Scope.ADMIN,
}
PATTERNS = ("*", "plant-*", "plant-1")
STREAMS = ("plant-1", "plant-12", "plant", "Plant-1", "other")
# each scope alone on each pattern, two together, and all
HELD = {
    f"k{number}": (scopes, pattern)
    for number, (scopes, pattern) in enumerate(
        itertools.product([{scope} for scope in Scope] + [{Scope.READ, Scope.OBSERVE}, set(Scope)], PATTERNS)
    )
}
OF_NO_STREAM = {
    ("GET", "/streams"): Scope.READ,
    ("POST", "/streams/estimate"): Scope.READ,
    ("POST", "/ingest"): Scope.OBSERVE,
    ("POST", "/ingest/otlp/v1/metrics"): Scope.OBSERVE,
    ("GET", "/sources"): Scope.READ,
    ("GET", "/sources/telegraf"): Scope.READ,
    ("GET", "/incidents"): Scope.READ,
    ("GET", "/overview"): Scope.READ,
    ("GET", "/templates"): Scope.READ,
    ("GET", "/templates/plants"): Scope.READ,
    ("GET", "/windows"): Scope.READ,
    ("GET", "/windows/deploy"): Scope.READ,
    ("PUT", "/windows/deploy"): Scope.LABEL,
    ("DELETE", "/windows/deploy"): Scope.LABEL,
}
OF_ALL_STREAMS = {
    ("PUT", "/sources/telegraf"),
    ("DELETE", "/sources/telegraf"),
    ("PUT", "/templates/plants"),
    ("DELETE", "/templates/plants"),
    ("GET", "/rules"),
    ("PUT", "/rules/on-call"),
    ("GET", "/rules/on-call"),
    ("DELETE", "/rules/on-call"),
    ("POST", "/rules/on-call/test"),
}
PARAMETERS = {
    "{s}~1~1": "{incident}",
    "{s}": "{stream}",
    "telegraf": "{source}",
    "plants": "{template}",
    "on-call": "{rule}",
    "deploy": "{window}",
    "samples/1": "samples/{seq}",
    "app.js": "{file}",
}
"""The names of what the paths above are filled with."""
OPEN = {
    ("GET", "/livez"): 200,
    ("GET", "/readyz"): 200,
    ("GET", "/metrics"): 200,
    ("GET", "/"): 200,
    ("GET", "/ui/app.js"): 200,
    ("GET", "/docs"): 200,
    ("GET", "/openapi.json"): 200,
    ("GET", "/session"): 200,
    ("DELETE", "/session"): 204,
    ("POST", "/session"): 415,  # which takes the key itself
}


@pytest.fixture
async def guarded():
    async with Service(api_keys=KEYS) as running:
        yield running


@pytest.fixture(params=["environment", "file", "cookie"])
async def held(request, tmp_path):
    """A service with every kind of key, and the headers that show each: of the environment, of a file, or a cookie."""
    texts = [f"{key}:{'+'.join(sorted(scopes))}:{pattern}" for key, (scopes, pattern) in HELD.items()]
    lines = [
        {"name": key, "sha256": digest_of(key).hex(), "scopes": sorted(scopes), "streams": pattern}
        for key, (scopes, pattern) in HELD.items()
    ]
    (tmp_path / "keys").write_text("\n".join(map(json.dumps, lines)))
    of_file = {"api_keys_file": str(tmp_path / "keys")}
    async with Service(**of_file if request.param == "file" else {"api_keys": ",".join(texts)}) as running:
        if request.param == "cookie":
            yield running, {key: await signed_in(running, key) for key in HELD}
        else:
            yield running, {key: {"Authorization": f"Bearer {key}"} for key in HELD}


async def signed_in(service, key):
    answer = await service.http.post("/session", json={"key": key})
    service.http.cookies.clear()
    return {"Cookie": f"{COOKIE}={answer.cookies[COOKIE]}", CSRF_HEADER: answer.json()["csrf"]}


async def ask(service, method, path, key):
    return await service.http.request(method, path, headers={"Authorization": f"Bearer {key}"})


def allows(scopes, pattern, scope, stream):
    """Say it once more, in other words than the service does."""
    return bool(scopes & {scope, Scope.ADMIN}) and fnmatchcase(stream, pattern)


@pytest.mark.parametrize(("route", "scope"), ROUTES.items())
async def test_every_key_may_do_just_what_it_was_given(held, route, scope):
    service, headers = held
    method, path = route
    for (key, (scopes, pattern)), stream in itertools.product(HELD.items(), STREAMS):
        methods = ("GET", "HEAD") if method == "GET" else (method,)
        for name in methods:
            answer = await service.http.request(name, path.format(s=stream), headers=headers[key])
            allowed = allows(scopes, pattern, scope, stream)
            assert (answer.status_code != 403) == allowed, (key, stream, answer.text)
            assert answer.status_code != 401


@pytest.mark.parametrize(("route", "scope"), OF_NO_STREAM.items())
async def test_what_is_of_no_stream_is_for_all_who_have_its_scope(held, route, scope):
    service, headers = held
    for key, (scopes, _) in HELD.items():
        answer = await service.http.request(*route, headers=headers[key])
        assert (answer.status_code != 403) == bool(scopes & {scope, Scope.ADMIN}), (key, answer.text)
        assert answer.status_code != 401


def test_the_interface_documents_the_scopes_that_are_asked_for():
    asked = {(method, path.partition("?")[0]): set() for method, path in ROUTES}
    for (method, path), scope in ROUTES.items():
        asked[method, path.partition("?")[0]].add(scope)
    documented = {(route.method, route.path): route.operation.scope for route in SERVED}
    for (method, path), scopes in asked.items():
        assert documented[method, named(path)] in scopes, path
    assert all(documented[method, named(path)] is scope for (method, path), scope in OF_NO_STREAM.items())
    assert all(documented[method, named(path)] is Scope.ADMIN for method, path in OF_ALL_STREAMS)


def named(path):
    """The path as the interface documents it."""
    path = path.partition("?")[0]
    for given, name in PARAMETERS.items():
        path = path.replace(given, name)
    return path


@pytest.mark.parametrize("route", OF_ALL_STREAMS)
async def test_what_is_of_all_streams_is_only_for_who_may_administer_all(held, route):
    service, headers = held
    for key, (scopes, pattern) in HELD.items():
        answer = await service.http.request(*route, headers=headers[key])
        assert (answer.status_code != 403) == (Scope.ADMIN in scopes and pattern == "*"), (key, answer.text)
        assert answer.status_code != 401


@pytest.mark.parametrize("route", [*ROUTES, *OF_NO_STREAM, *OF_ALL_STREAMS])
@pytest.mark.parametrize("key", ["", "wrong", "al", "alll", "ALL", "all:read", "ключ"])
async def test_without_a_good_key_nothing_is_answered(guarded, route, key):
    method, path = route
    headers = {"Authorization": b"Bearer " + key.encode()} if key else {}
    answer = await guarded.http.request(method, path.format(s="plant-1"), headers=headers)
    assert answer.status_code == 401
    assert answer.json()["code"] == "unauthenticated"
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_every_route_asks_for_a_key_but_those_for_probes(guarded):
    paths = (await guarded.http.get("/openapi.json")).json()["paths"]
    served = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert served == {(method, named(path)) for method, path in [*ROUTES, *OPEN, *OF_NO_STREAM, *OF_ALL_STREAMS]}
    for (method, path), status in OPEN.items():
        assert (await guarded.http.request(method, path)).status_code == status


async def test_the_key_may_come_in_either_header(guarded):
    for headers in ({"Authorization": "bearer r"}, {"X-API-Key": "r"}):
        assert (await guarded.http.get("/streams", headers=headers)).status_code == 200
    mixed = {"Authorization": "Bearer wrong", "X-API-Key": "r"}
    assert (await guarded.http.get("/streams", headers=mixed)).status_code == 401


async def test_a_list_shows_only_what_the_key_may_read(guarded):
    for stream in ("other", "plant-1", "plant-2"):
        await ask(guarded, "PUT", f"/streams/{stream}", "all")
        headers = {"Authorization": "Bearer all"}
        await guarded.http.put(f"/streams/{stream}", json={"n_features": 1}, headers=headers)
    for key, names in {"r": ["other", "plant-1", "plant-2"], "ro": ["plant-1", "plant-2"], "one": ["plant-1"]}.items():
        page = (await ask(guarded, "GET", "/streams", key)).json()
        assert [entry["stream"] for entry in page["streams"]] == names
    assert (await ask(guarded, "GET", "/streams", "l")).status_code == 403


async def test_a_refused_request_reads_no_body_and_leaves_no_stream(guarded):
    answer = await guarded.http.post(
        "/observe?stream=new", json={"samples": [[1.0]]}, headers={"Authorization": "Bearer r"}
    )
    assert answer.status_code == 403
    assert (await ask(guarded, "GET", "/streams", "all")).json()["streams"] == []


async def test_keys_are_nowhere_to_be_read(guarded, caplog):
    answer = await guarded.http.get("/streams", headers={"Authorization": "Bearer sesame"})
    assert "sesame" not in answer.text + caplog.text
    assert "plant-1'" not in repr(KeyRing.parse(KEYS))
    assert b"digest" not in repr(KeyRing.parse(KEYS).grants).encode()


@pytest.mark.parametrize(
    "text", [",", "a,,b", "a b", "k:", "k:write", "k:read:", "k:read:a*b", ":read", "k:read+", "é"]
)
def test_keys_that_cannot_be_read_stop_the_start(text):
    with pytest.raises(InvalidKeys, match=r"entry [12]") as refused:
        KeyRing.parse(text)
    assert "write" not in str(refused.value).partition("scopes are")[0]


def test_a_stream_pattern_may_hold_colons():
    (grant,) = KeyRing.parse("k:read:plant:1:*").grants
    assert grant.covers("plant:1:7")
    assert not grant.covers("plant:2:7")


@pytest.mark.parametrize("details", ["false", "true"])
async def test_a_list_tells_no_name_that_its_reader_may_not_know_and_still_comes_to_its_end(details):
    async with Service(api_keys="all,some:read:b*") as service:
        names = ["a-secret", "b1", "b2", "b3", "c-secret", "d-secret"]
        for name in names:
            await service.http.put(f"/streams/{name}", json={"n_features": 1}, headers={"X-API-Key": "all"})
        seen, after = [], ""
        while after is not None:
            path = f"/streams?limit=1&details={details}&after={after}"
            page = (await service.http.get(path, headers={"X-API-Key": "some"})).json()
            seen += [entry["stream"] for entry in page["streams"]]
            assert page["next"] in {None, *seen}
            after = page["next"]
        assert seen == ["b1", "b2", "b3"]
