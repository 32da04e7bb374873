"""Rules over HTTP: kept, given back without secrets, refused by name, tested."""

import pytest

from tests.app.harness import Service
from tests.app.notices.receiver import receiving

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
RULE = {"streams": "web-*", "target": "webhook", "url": "https://1.1.1.1/hook", "secret": SECRET}


async def test_a_rule_is_kept_listed_and_deleted_and_its_secret_never_given(service):
    given = await service.http.put("/rules/on-call", json=RULE)
    assert given.status_code == 201
    got = await service.http.get("/rules/on-call")
    assert got.json() == given.json()
    assert (got.json()["rule"], got.json()["has_secret"], got.json()["tell"]) == ("on-call", True, ["opened", "closed"])
    assert "whsec" not in given.text + got.text
    assert (await service.http.put("/rules/on-call", json=RULE)).status_code == 200
    assert await service.accepted("GET", "/rules") == {"rules": ["on-call"]}
    assert (await service.http.delete("/rules/on-call")).status_code == 204
    await service.refused("GET", "/rules/on-call", 404, "unknown_rule")
    await service.refused("DELETE", "/rules/on-call", 404, "unknown_rule")
    await service.refused("POST", "/rules/on-call/test", 404, "unknown_rule")


@pytest.mark.parametrize(
    ("given", "code", "field"),
    [
        ({"url": "http://127.0.0.1/"}, "invalid_rule", "url"),
        ({"url": "http://localhost:9093"}, "invalid_rule", "url"),
        ({"url": "http://169.254.169.254/latest"}, "invalid_rule", "url"),
        ({"url": "gopher://1.1.1.1"}, "invalid_rule", "url"),
        ({"secret": "whsec_c2hvcnQ="}, "invalid_rule", "secret"),
        ({"secret": ["whsec_c2hvcnQ="]}, "invalid_body", "secret"),
        ({"secrets": "whsec_c2hvcnQ="}, "invalid_body", "secrets"),
        ({"target": "pager"}, "invalid_body", "target"),
        ({"least_severity": -1}, "invalid_body", "least_severity"),
        ({"quiet_hours": {"begin": "25:00", "end": "07:00"}}, "invalid_rule", "quiet_hours.begin"),
    ],
)
async def test_a_bad_rule_changes_nothing_and_is_refused_by_name(service, given, code, field):
    problem = await service.refused("PUT", "/rules/on-call", 422, code, json=RULE | given)
    assert problem["field"] == field
    assert problem["limit"]
    assert "c2hvcnQ" not in str(problem)
    assert await service.accepted("GET", "/rules") == {"rules": []}


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"secret": "whsec_c2hvcnQ="}, "[redacted]"),
        ({"secret": ["whsec_c2hvcnQ="]}, "[redacted]"),
        ({"secrets": "whsec_c2hvcnQ="}, "[redacted]"),
        ({"secret": ""}, ""),
        ({"url": "hooks.example.org/c2hvcnQ="}, "[redacted]"),
        ({"url": f"https://hooks.example.org/c2hvcnQ={2048 * 'x'}"}, "[redacted]"),
        ({"least_severity": -1}, -1),
    ],
)
async def test_a_refusal_says_that_it_does_not_repeat_what_may_be_secret(service, given, value):
    problem = (await service.http.put("/rules/on-call", json=RULE | given)).json()
    assert problem["value"] == value
    assert "c2hvcnQ" not in str(problem)


@pytest.mark.parametrize(
    ("path", "given", "limit"),
    [
        ("/rules/a", RULE | {"target": "pager"}, "one of webhook, chat, alertmanager"),
        ("/rules/a", RULE | {"tell": ["open"]}, "one of opened, closed"),
        ("/sources/a", {"preset": "telegraf", "new": "merge"}, "one of ignore, version"),
        ("/sources/a", {"preset": "telegraf", "format": "csv"}, "one of json, influx, otlp, prometheus"),
    ],
)
async def test_a_refusal_says_which_texts_there_are(service, path, given, limit):
    assert (await service.refused("PUT", path, 422, "invalid_body", json=given))["limit"] == limit


async def test_rules_are_bounded():
    async with Service(max_rules=1) as service:
        await service.accepted("PUT", "/rules/a", json=RULE)
        await service.accepted("PUT", "/rules/a", json=RULE)
        problem = await service.refused("PUT", "/rules/b", 413, "too_many", json=RULE)
        assert "ITAN_MAX_RULES" in problem["limit"]


@pytest.mark.parametrize("grant", ["read", "admin:web-*", "read+observe+label"])
async def test_rules_need_a_key_that_may_administer_all_streams(grant):
    async with Service(key="k", api_keys=f"k:{grant}") as service:
        for method, path in [("GET", "/rules"), ("GET", "/rules/a"), ("DELETE", "/rules/a"), ("POST", "/rules/a/test")]:
            await service.refused(method, path, 403, "forbidden")
        await service.refused("PUT", "/rules/a", 403, "forbidden", json=RULE)


async def test_a_test_notice_says_what_became_of_it():
    async with Service(notices_allow_private=True) as service, receiving(answers=[204, 404]) as receiver:
        await service.accepted("PUT", "/rules/a", json=RULE | {"url": receiver.url})
        sent = await service.accepted("POST", "/rules/a/test")
        assert sent == {"id": receiver.ids[0], "delivered": True, "status": 204, "reason": None}
        assert receiver.received[0].json["type"] == "test"
        sent = await service.accepted("POST", "/rules/a/test")
        assert (sent["delivered"], sent["status"]) == (False, 404)
