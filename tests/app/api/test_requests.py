"""What is logged of requests, and what is not."""

import asyncio
import re
from typing import Any

import httpx2
import pytest

from app.api.requests import SLOW_SECONDS
from app.logs.choices import LogLevel
from app.storage import StoreUnavailable
from app.storage.memory import MemoryStore
from tests.app.harness import DisturbedStore, Service, raising
from tests.app.log import Log
from tests.app.streams.open.test_loader import altered

SECRETS = "123.456"


async def post(service: Service, path: str, body: object, **headers: str) -> httpx2.Response:
    return await service.http.post(path, json=body, headers={name.replace("_", "-"): headers[name] for name in headers})


async def test_an_accepted_request_is_one_line_at_debug(log: Log) -> None:
    log.set_up(LogLevel.DEBUG)
    async with Service(log_level="debug") as service:
        answer = await post(service, "/observe?stream=s", {"samples": [[1, 2]]}, x_request_id="abc-1.2_3")
    (line,) = (line for line in log.lines() if line["event"] == "request")
    assert line.pop("timestamp")
    assert line.pop("duration_ms") > 0
    assert answer.headers["x-request-id"] == "abc-1.2_3"
    assert line == {
        "level": "debug",
        "event": "request",
        "request_id": "abc-1.2_3",
        "method": "POST",
        "stream": "s",
        "route": "/observe",
        "status": 200,
    }


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "a\x1b[31m", "é", '"}'])
async def test_an_id_that_is_not_sane_is_replaced(given: str, service: Service) -> None:
    answers = [await service.http.get("/livez", headers={"x-request-id": given.encode("latin-1")}) for _ in range(2)]
    made = [answer.headers.get_list("x-request-id") for answer in answers]
    assert all(len(ids) == 1 and re.fullmatch("[0-9a-f]{12}-[0-9a-f]+", ids[0]) for ids in made)
    assert made[0] != made[1]


async def test_at_info_busy_routes_are_silent_and_changes_of_streams_are_told(log: Log) -> None:
    log.set_up()
    async with Service() as service:
        await service.accepted("PUT", "/streams/s", json={"n_features": 2})
        await service.accepted("POST", "/observe?stream=s", json={"samples": [[1, 2]]})
        await service.accepted("POST", "/feedback?stream=s", json={"labels": [{"seq": 1, "anomaly": False}]})
        for path in ("/livez", "/readyz", "/streams", "/streams/s", "/streams/s/export"):
            assert (await service.http.get(path)).status_code == 200
        assert (await service.http.get("/metrics")).status_code == 200
        await service.http.delete("/streams/s")
    told = [(line["method"], line["route"]) for line in log.lines() if line["event"] == "request"]
    assert told == [("PUT", "/streams/{stream}"), ("DELETE", "/streams/{stream}")]


async def test_a_slow_request_is_told(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.set_up()
    monkeypatch.setattr("app.api.requests.SLOW_SECONDS", 0.0)
    assert SLOW_SECONDS >= 0.5
    async with Service() as service:
        await service.accepted("POST", "/observe?stream=s", json={"samples": [[1, 2]]})
        await service.http.get("/livez")
    assert [line["route"] for line in log.lines() if line["event"] == "request"] == ["/observe"]


async def refuse_some(log: Log, **settings: Any) -> list[dict[str, Any]]:
    """Send requests full of what must not be logged, and give their lines."""
    log.set_up()
    async with Service(**settings) as service:
        await post(service, "/observe?stream=s", {"samples": [[float(SECRETS), "x-secret"]]})
        await post(service, "/observe?stream=s", {"samples": [[1, 2]], "ids": ["id-secret", "id-secret"]})
        await post(service, "/feedback?stream=s", {"labels": [{"id": "id-secret", "anomaly": "yes-secret"}]})
        await post(service, "/observe?stream=s%0a%22secret", {"samples": [[1, 2]]})
        await service.http.get("/secret/path")
    return [line for line in log.lines() if line["event"] == "request"]


async def test_a_refusal_says_why_and_not_what_was_sent(log: Log) -> None:
    lines = await refuse_some(log)
    assert [(line["problem"], line["level"]) for line in lines] == [
        ("invalid_samples", "info"),
        ("invalid_ids", "info"),
        ("invalid_body", "info"),
        ("invalid_stream_id", "info"),
        ("not_found", "info"),
    ]
    assert all(line["field"] for line in lines)
    assert "secret" not in str(lines)
    assert SECRETS not in str(lines)


async def test_what_was_sent_is_logged_where_that_is_asked_for(log: Log) -> None:
    lines = await refuse_some(log, log_values=True)
    assert "x-secret" in lines[0]["detail"]
    assert lines[-1]["value"] == "/secret/path"


async def test_a_key_is_told_by_its_place_only(log: Log) -> None:
    log.set_up()
    async with Service(api_keys="first,sesame:read", key="sesame") as service:
        await service.refused("POST", "/observe?stream=s", 403, "forbidden", json={"samples": [[1, 2]]})
        wrong = {"Authorization": "Bearer wrong-key"}
        await service.refused("GET", "/streams/s", 401, "unauthenticated", headers=wrong)
    text = log.text()
    assert '"stream":"s","key":2,' in text
    assert '"problem":"unauthenticated"' in text
    assert "sesame" not in text
    assert "wrong-key" not in text


async def test_a_store_that_is_down_is_a_warning_with_its_reason(log: Log) -> None:
    log.set_up()
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        store.before["load"] = raising(StoreUnavailable("Connection refused"))
        await service.refused("POST", "/observe?stream=s", 503, "store_unavailable", json={"samples": [[1, 2]]})
    (line,) = (line for line in log.lines() if line["event"] == "request")
    assert (line["level"], line["problem"], line["stream"]) == ("warning", "store_unavailable", "s")
    assert "Connection refused" in line["reason"]


async def test_a_failure_is_one_line_with_its_traceback_and_answered_with_the_id(log: Log) -> None:
    log.set_up()
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        store.before["load"] = raising(ZeroDivisionError("by\nzero"))
        answer = await post(service, "/observe?stream=s", {"samples": [[1, 2]]}, x_request_id="abc")
    (line,) = (line for line in log.lines() if line["level"] == "error")
    assert (answer.status_code, answer.headers["x-request-id"]) == (500, "abc")
    assert (line["event"], line["request_id"], line["stream"], line["status"]) == ("request", "abc", "s", 500)
    assert line["problem"] == "internal_error"
    assert line["exception"].endswith("ZeroDivisionError: by\nzero")


async def test_what_is_logged_deep_inside_names_the_request(log: Log) -> None:
    store = await altered("score", 0.5)
    log.set_up()
    async with Service(store) as service:
        await post(service, "/observe?stream=s", {"samples": [[1, 2]]}, x_request_id="abc")
    (line,) = (line for line in log.lines() if "differs from the log" in line["event"])
    assert (line["request_id"], line["stream"], line["level"]) == ("abc", "s", "warning")


async def test_a_request_that_is_cut_off_is_told(log: Log) -> None:
    log.set_up()
    store = DisturbedStore(MemoryStore())
    reached, never = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        reached.set()
        await never.wait()

    async with Service(store, shutdown_seconds=0.01) as service:
        store.before["load"] = wait
        asking = asyncio.create_task(service.http.get("/streams/s"))
        await reached.wait()
        asking.cancel()
        await asyncio.wait([asking])
        store.before.clear()
    (line,) = (line for line in log.lines() if line["event"] == "request")
    assert (line["level"], line["status"], line["stream"]) == ("warning", None, "s")
