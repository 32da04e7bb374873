import logging

import pytest

from app.api.problems import TABLE
from app.storage import (
    Fenced,
    LeaseHeld,
    StaleWriter,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
    StreamNotFound,
)
from app.storage.memory import MemoryStore
from app.streams import errors
from tests.app.harness import DisturbedStore, Service, blobs, raising


def test_every_refusal_stands_in_the_table():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) > 8
    assert set(kinds) - {errors.Refused, StoreError} <= set(TABLE)
    assert set(StoreError.__subclasses__()) <= set(TABLE)


def test_codes_are_stable_words():
    for status, code, title in TABLE.values():
        assert 400 <= status < 600
        assert code == code.lower().replace(" ", "_")
        assert title[0].isupper()


@pytest.mark.parametrize(
    ("error", "status", "code", "reason"),
    [
        (StoreUnavailable("gone"), 503, "store_unavailable", "unavailable"),
        (StaleWriter("s", (1, 0), (2, 0)), 503, "stream_moved", "stale"),
        (Fenced("s", 1, 2), 503, "stream_moved", "stale"),
        (LeaseHeld("s", 2.5), 503, "stream_elsewhere", "elsewhere"),
        (StreamNotFound("s"), 404, "unknown_stream", "missing"),
        (StoreCorrupt("s", "entry 3 is missing"), 500, "store_corrupt", "corrupt"),
        (StoreError("a command that no server knows"), 500, "internal_error", "other"),
    ],
)
async def test_faults_of_the_store(error, status, code, reason):
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(blobs(3))
        store.before["append"] = raising(error)
        problem = await service.refused("POST", "/observe?stream=s", status, code, json={"samples": [[1, 2]]})
        assert problem["detail"]
        answer = await service.http.post("/observe?stream=s", json={"samples": [[1, 2]]})
        assert ("retry-after" in answer.headers) == (status == 503)
        assert await service.metric("itan_store_errors_total", reason=reason) == 2


async def test_a_fault_inside_tells_strangers_nothing(caplog):
    caplog.set_level(logging.CRITICAL)
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        store.before["streams"] = raising(RuntimeError("secret path /srv/x.py"))
        problem = await service.refused("GET", "/streams", 500, "internal_error")
        assert problem["detail"] == problem["title"]
        assert await service.metric("itan_requests_total", route="/streams", method="GET", status_class="5xx") == 1


async def test_the_router_answers_in_the_same_form(service):
    assert "see /docs" in (await service.refused("GET", "/nowhere", 404, "not_found"))["limit"]
    answer = await service.http.put("/observe")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["limit"] == "POST"
