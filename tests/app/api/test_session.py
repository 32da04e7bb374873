"""Signing in once, with a cookie that only our own pages can use for changes."""

from http.cookies import SimpleCookie

import pytest

from app.security import COOKIE, CSRF_HEADER
from tests.app.harness import FakeClock, Service

KEYS = "all,viewer:read,plant:read+label:plant-*"
SAMPLES = {"samples": [[1.0, 2.0]] * 3}


@pytest.fixture
async def guarded():
    async with Service(api_keys=KEYS) as running:
        yield running


async def sign_in(service, key="all"):
    """Sign in; give the ticket and the token."""
    answer = await service.http.post("/session", json={"key": key})
    assert answer.status_code == 200, answer.text
    return answer.cookies[COOKIE], answer.json()["csrf"]


def forget(service):
    service.http.cookies.clear()


async def test_the_cookie_opens_what_its_key_opens(guarded):
    _, csrf = await sign_in(guarded)
    await guarded.refused("POST", "/observe?stream=s", 403, "csrf_token_needed", json=SAMPLES)
    await guarded.accepted("POST", "/observe?stream=s", json=SAMPLES, headers={CSRF_HEADER: csrf})
    for path in ("/streams", "/streams/s", "/streams/s/history", "/streams/s/review", "/streams/s/samples/1"):
        assert (await guarded.http.get(path)).status_code == 200
    assert (await guarded.http.post("/density?stream=s", json={"points": [[1, 2]]})).json()["code"] == "not_ready"


@pytest.mark.parametrize("token", [None, "", "wrong", "é"])
async def test_a_change_with_the_cookie_alone_changes_nothing(guarded, token):
    _, csrf = await sign_in(guarded)
    await guarded.accepted("POST", "/observe?stream=s", json=SAMPLES, headers={CSRF_HEADER: csrf})
    headers = {} if token is None else {CSRF_HEADER: token.encode()}
    for method, path in [
        ("POST", "/observe?stream=s"),
        ("POST", "/feedback?stream=s"),
        ("DELETE", "/streams/s"),
        ("POST", "/streams/s/reset"),
        ("PUT", "/streams/s"),
    ]:
        await guarded.refused(method, path, 403, "csrf_token_needed", json={}, headers=headers)
    assert (await guarded.accepted("GET", "/streams/s"))["n_seen"] == 3


async def test_the_token_of_another_session_is_not_good(guarded):
    _, first = await sign_in(guarded)
    _, second = await sign_in(guarded)
    assert first != second
    await guarded.refused(
        "POST", "/observe?stream=s", 403, "csrf_token_needed", json=SAMPLES, headers={CSRF_HEADER: first}
    )


async def test_a_key_in_a_header_needs_no_token_and_makes_the_cookie_nothing(guarded):
    await sign_in(guarded)
    as_all, as_viewer = {"Authorization": "Bearer all"}, {"X-API-Key": "viewer"}
    await guarded.accepted("POST", "/observe?stream=s", json=SAMPLES, headers=as_all)
    await guarded.refused("POST", "/observe?stream=s", 403, "forbidden", json=SAMPLES, headers=as_viewer)
    await guarded.refused("GET", "/streams", 401, "unauthenticated", headers={"Authorization": "Bearer x"})


async def test_the_cookie_can_do_no_more_than_its_key(guarded):
    _, csrf = await sign_in(guarded, "plant")
    with_token = {CSRF_HEADER: csrf}
    await guarded.refused("GET", "/streams/other/history", 403, "forbidden")
    await guarded.refused("GET", "/streams/other/events", 403, "forbidden")
    await guarded.refused("GET", "/streams/other/samples/1", 403, "forbidden")
    await guarded.refused("GET", "/streams/other/review", 403, "forbidden")
    await guarded.refused("GET", "/streams/plant-1/events", 404, "unknown_stream")
    await guarded.refused("POST", "/observe?stream=plant-1", 403, "forbidden", json=SAMPLES, headers=with_token)
    labels = {"labels": [{"seq": 1, "anomaly": True}]}
    await guarded.refused("POST", "/feedback?stream=plant-1", 404, "unknown_stream", json=labels, headers=with_token)


async def test_the_session_says_what_it_may(guarded):
    nobody = {"keys_required": True, "signed_in": False, "csrf": None, "scopes": None, "streams": None, "grants": None}
    assert await guarded.accepted("GET", "/session") == nobody
    _, csrf = await sign_in(guarded, "plant")
    known = await guarded.accepted("GET", "/session")
    assert known["csrf"] == csrf
    assert known["signed_in"]
    assert (known["scopes"], known["streams"]) == (["label", "read"], "plant-*")
    assert known["grants"] == [{"scopes": ["label", "read"], "streams": "plant-*"}]
    await sign_in(guarded, "all")
    assert (await guarded.accepted("GET", "/session"))["scopes"] == ["admin", "label", "metrics", "observe", "read"]


async def test_without_keys_nobody_signs_in(service):
    known = await service.accepted("GET", "/session")
    assert not known["keys_required"]
    assert not known["signed_in"]
    await service.refused("POST", "/session", 401, "unauthenticated", json={"key": "any"})


@pytest.mark.parametrize("key", ["x", "al", "alll", "all:read", "viewer ", "ключ", "a" * 1024])
async def test_a_wrong_key_is_wrong_and_no_more(guarded, key):
    problem = await guarded.refused("POST", "/session", 401, "unauthenticated", json={"key": key})
    assert key not in problem["detail"] or key in "a valid key is needed"
    assert COOKIE not in guarded.http.cookies


@pytest.mark.parametrize("body", ["{}", '{"key": 1}', '{"key": ""}', "[]", '{"key": "all", "key": "x"}', "{", "\x00"])
async def test_bodies_that_are_no_key(guarded, body):
    answer = await guarded.http.post("/session", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert COOKIE not in answer.cookies


async def test_forms_and_floods_are_refused(guarded):
    form = {"content-type": "application/x-www-form-urlencoded"}
    await guarded.refused("POST", "/session", 415, "unsupported_media_type", content="key=all", headers=form)
    await guarded.refused("POST", "/session", 413, "body_too_large", json={"key": "a" * 70_000})


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_another_site_signs_nobody_in_or_out(guarded, method):
    headers = {"Sec-Fetch-Site": "cross-site"}
    await guarded.refused(method, "/session", 403, "cross_site", json={"key": "all"}, headers=headers)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_the_cookie_is_for_us_alone(guarded, scheme):
    answer = await guarded.http.post(f"{scheme}://localhost/session", json={"key": "all"})
    morsel = SimpleCookie(answer.headers["set-cookie"])[COOKIE]
    assert morsel["httponly"]
    assert morsel["samesite"].lower() == "strict"
    assert morsel["path"] == "/"
    assert bool(morsel["secure"]) == (scheme == "https")
    assert int(morsel["max-age"]) == 43_200
    assert not morsel["domain"]
    assert answer.headers["cache-control"] == "no-store"


async def test_signing_out_takes_the_cookie_away(guarded):
    await sign_in(guarded)
    assert (await guarded.http.delete("/session")).status_code == 204
    await guarded.refused("GET", "/streams", 401, "unauthenticated")


async def test_it_ends_when_it_was_said_to(guarded):
    await sign_in(guarded)
    guarded.clock.wall += 43_199
    assert (await guarded.http.get("/streams")).status_code == 200
    guarded.clock.wall += 1
    await guarded.refused("GET", "/streams", 401, "unauthenticated")
    assert not (await guarded.accepted("GET", "/session"))["signed_in"]


async def test_a_changed_ticket_is_none(guarded):
    ticket, _ = await sign_in(guarded)
    ends, nonce, mark = ticket.split(".")
    changed = [
        f"{int(ends) + 1}.{nonce}.{mark}",
        f"{ends}.{nonce[:-1]}{'A' if nonce[-1] != 'A' else 'B'}.{mark}",
        f"{ends}.{nonce}.{mark[:-1]}{'0' if mark[-1] != '0' else '1'}",
        f"{ends}.{nonce}.",
        f"{ends}.{nonce}",
        f"{ticket}x",
        f"99999999999999.{nonce}.{mark}",
        "",
        "a.b.c",
        "é",
        "." * 9000,
    ]
    forget(guarded)
    for text in changed:
        headers = {"Cookie": f"{COOKIE}={text}".encode()}
        await guarded.refused("GET", "/streams", 401, "unauthenticated", headers=headers)
    good = await guarded.http.get("/streams", headers={"Cookie": f"{COOKIE}={ticket}"})
    assert good.status_code == 200


async def test_every_worker_with_the_key_takes_it_and_none_without():
    clock = FakeClock()
    async with Service(clock=clock, api_keys=KEYS) as one:
        ticket, csrf = await sign_in(one, "viewer")
    headers = {"Cookie": f"{COOKIE}={ticket}"}
    async with Service(clock=clock, api_keys="new,viewer:read") as another:
        assert (await another.http.get("/streams", headers=headers)).status_code == 200
        assert (await another.http.get("/session", headers=headers)).json()["csrf"] == csrf
    async with Service(clock=clock, api_keys="all,new") as without:
        await without.refused("GET", "/streams", 401, "unauthenticated", headers=headers)
