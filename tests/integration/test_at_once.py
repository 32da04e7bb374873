"""Many requests at the same moment, and clients that hang up."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
import uvicorn

from app.storage import START
from app.storage.memory import MemoryStore
from app.storage.sqlite import SqliteStore
from app.streams.log.log import Log
from app.streams.open.clock import Clock
from tests.app.harness import DisturbedStore, Service, blobs


@asynccontextmanager
async def listening(service: Service) -> AsyncIterator[int]:
    """Serve an app on a loopback port."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(service.app, log_level="error", lifespan="on", loop="asyncio"))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:  # noqa: ASYNC110 nothing announces it
        await asyncio.sleep(0.001)
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await task
        listener.close()


async def begun(service: Service) -> None:
    """Wait until a request is being worked on."""
    while not service.app.state.service.tasks:  # noqa: ASYNC110 nothing announces it
        await asyncio.sleep(0)


def written(path: str, document: object) -> bytes:
    """Write a request as it goes over the wire."""
    body = json.dumps(document).encode()
    lines = ("Host: localhost", "Content-Type: application/json", f"Content-Length: {len(body)}")
    return "\r\n".join((f"POST {path} HTTP/1.1", *lines, "", "")).encode() + body


async def hang_up(port: int, request: bytes, *, read: int = 0) -> None:
    """Send a request and go, at once or after the first bytes of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    await writer.drain()
    if read:
        await reader.readexactly(read)
    writer.transport.abort()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_clients_that_hang_up_lose_nothing_and_hold_nothing(kind, tmp_path):
    store = DisturbedStore(MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "itan.db"))
    service = Service(store, Clock())
    X = blobs(1200)
    bodies = [
        {"samples": X[i : i + 40].tolist(), "ids": [f"i{k}" for k in range(i, i + 40)]} for i in range(0, 1200, 40)
    ]

    async def slowly() -> None:
        await asyncio.sleep(0.01)

    store.before["append"] = store.before["find_ids"] = slowly
    async with listening(service) as port:
        for number, body in enumerate(bodies):
            await hang_up(port, written("/observe?stream=s", body), read=20 * (number % 3 == 0))
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            answers = [(await client.post("/observe?stream=s", json=body)).json() for body in bodies]
            again = [(await client.post("/observe?stream=s", json=body)).json() for body in bodies]
            described = (await client.get("/streams/s")).json()
        assert again == answers
        assert described["n_seen"] == 1200
        assert sorted(seq for answer in answers for seq in answer["seq"]) == list(range(1, 1201))
        assert not service.registry.sessions["s"].lock.locked()
        logged = sum(len(entry.ids) for entry in await Log(store.store, "s").entries(START, 1000))
        assert logged == 1200
    await service.http.aclose()


async def test_a_request_cancelled_inside_the_append_is_still_carried_out():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        store.before["append"] = (held := asyncio.Event()).wait
        pending = asyncio.create_task(service.observe([[1.0]], ids=["a"]))
        await begun(service)
        await asyncio.sleep(0)
        pending.cancel()
        await asyncio.wait([pending])
        held.set()
        del store.before["append"]
        await service.app.state.service.tasks.finish()
        assert (await store.load("s"))[1] == (1, 0)
        assert (await service.observe([[1.0]], ids=["a"]))["seq"] == [1]
        assert (await service.accepted("GET", "/streams/s"))["n_seen"] == 1


async def test_the_same_request_twenty_times_at_once(service):
    await service.observe(blobs(60))
    X, ids = blobs(50, seed=1), [f"i{i}" for i in range(50)]
    answers = await asyncio.gather(*(service.observe(X, ids=ids) for _ in range(20)))
    assert all(answer == answers[0] for answer in answers)
    assert (await service.accepted("GET", "/streams/s"))["n_seen"] == 110
    labelled = await asyncio.gather(*(service.feedback({"id": "i7", "anomaly": True}) for _ in range(20)))
    outcomes = [answer["outcome"][0] for answer in labelled]
    assert sorted(outcomes) == ["applied"] + ["duplicate"] * 19
    assert await service.metric("itan_labels_total", outcome="applied") == 1
    assert await service.metric("itan_labels_total", outcome="duplicate") == 19


async def test_the_first_request_twenty_times_at_once(service):
    X, ids = blobs(50), [f"i{i}" for i in range(50)]
    answers = await asyncio.gather(*(service.observe(X, ids=ids) for _ in range(20)))
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["seq"] == list(range(1, 51))


async def test_requests_of_one_stream_take_turns_in_order():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:

        async def yield_often() -> None:
            for _ in range(5):
                await asyncio.sleep(0)

        store.before["*"] = yield_often
        answers = await asyncio.gather(*(service.observe([[float(i)]]) for i in range(30)))
        assert [answer["seq"] for answer in answers] == [[i] for i in range(1, 31)]


async def test_streams_do_not_wait_for_each_other():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe([[1.0]], "other")
        store.before["append"] = (held := asyncio.Event()).wait
        pending = asyncio.create_task(service.observe([[1.0]]))
        await begun(service)
        del store.before["append"]
        await asyncio.sleep(0)
        store.before.pop("append", None)
        assert (await service.observe([[2.0]], "other"))["seq"] == [2]
        held.set()
        await pending


async def test_a_big_batch_lets_others_in_between():
    service = Service(clock=Clock())
    X = blobs(4_000, 20)
    async with service:
        await service.observe(X[:1_000])
        pending = asyncio.create_task(service.observe(X))
        waits = []
        while not pending.done():
            start = time.process_time()  # of this process: what else runs on the machine makes it no longer
            await asyncio.sleep(0)  # where a probe of another connection waits for its turn
            await service.accepted("GET", "/livez")
            waits.append(time.process_time() - start)
        assert (await pending)["seq"][-1] == 5_000
        assert len(waits) > 10
        assert max(waits) < 1.0
