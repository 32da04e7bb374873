"""Several workers on one store: POST /ingest takes records at any of them, and each stream stays where it is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest

from app.storage import StoreUnavailable
from app.storage.memory import MemoryStore
from app.streams.allowance import UNLIMITED
from app.streams.batches.records import Record
from app.workers.messages import packed, read_reply
from app.workers.peers import PATH
from app.workers.signatures import HEADER
from tests.app.harness import DisturbedStore, FakeClock, Service, blobs, raising

SECRET = "a secret of all the workers"
Hook = Callable[[httpx2.Request], Awaitable[None]]


class Network(httpx2.AsyncBaseTransport):
    """Leads requests to workers in this process by their host names, and keeps what it has led."""

    def __init__(self) -> None:
        self.workers: dict[str, Service] = {}
        self.sent: list[httpx2.Request] = []
        self.before: dict[str, Hook] = {}
        self.after: dict[str, Hook] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request)
        host = request.url.host
        if hook := self.before.get(host):
            await hook(request)
        if host not in self.workers:
            raise httpx2.ConnectError("connection refused", request=request)
        transport = httpx2.ASGITransport(self.workers[host].app, raise_app_exceptions=False)
        answer = await transport.handle_async_request(request)
        if hook := self.after.get(host):
            await hook(request)
        return answer


class Workers:
    """Workers on one store that see one clock."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock.monotonic)
        self.network = Network()
        self.stack = AsyncExitStack()

    async def start(self, name: str, **settings: Any) -> Service:
        """Start a worker that others can reach."""
        settings = {
            "worker": name,
            "handover_seconds": 0,
            "advertise_url": f"http://{name}",
            "worker_secret": SECRET,
        } | settings
        service = Service(DisturbedStore(self.store), self.clock, **settings)
        service.app.state.service.forwarder._peers.transport = self.network
        await self.stack.enter_async_context(service)
        self.network.workers[name] = service
        return service

    async def kill(self, name: str) -> None:
        """End a worker without a word."""
        await self.network.workers.pop(name).crash()


@pytest.fixture
async def workers() -> AsyncIterator[Workers]:
    several = Workers()
    async with several.stack:
        yield several


def records(streams: str, n: int, first: int = 0) -> list[dict[str, Any]]:
    """Make records of these streams in turns."""
    X = blobs(n * len(streams), seed=first)
    return [
        {"stream": stream, "sample": X[i * len(streams) + k].tolist(), "id": f"{first}-{i}-{stream}"}
        for i in range(n)
        for k, stream in enumerate(streams)
    ]


async def ingest(service: Service, given: list[dict[str, Any]], query: str = "") -> dict[str, Any]:
    return await service.accepted("POST", f"/ingest{query}", json=given)


def held_by(service: Service) -> set[str]:
    return set(service.registry.worker.leases._tokens)


async def test_it_is_as_if_one_worker_had_taken_all(workers):
    a, b = await workers.start("a"), await workers.start("b")
    alone = Service()
    async with alone:
        await ingest(alone, records("st", 1))
        await ingest(alone, records("uv", 1))
        await ingest(a, records("st", 1))
        await ingest(b, records("uv", 1))
        for turn in range(1, 7):
            batch = records("suvt", 10, turn)
            batch.insert(7, {"stream": "u", "sample": [1]})
            batch.insert(9, {"stream": "s", "sample": {"x": 1}})
            answer = await ingest((a, b)[turn % 2], batch)
            assert answer == await ingest(alone, batch)
            assert len(answer["problems"]) == 2
        for stream in "stuv":
            last = {"samples": [[1, 2]]}
            holder = a if stream in "st" else b
            expected = await alone.accepted("POST", f"/observe?stream={stream}&learn=false", json=last)
            assert await holder.accepted("POST", f"/observe?stream={stream}&learn=false", json=last) == expected
    assert (held_by(a), held_by(b)) == ({"s", "t"}, {"u", "v"})
    # one request for each that came: the first one finds out who holds the streams
    assert len(workers.network.sent) == 6
    assert await a.metric("itan_forwarded_records_total", outcome="answered") == 63
    assert await a.metric("itan_forwarded_records_total", outcome="failed") == 0


async def test_a_repeat_at_another_worker_gets_the_first_answers(workers):
    a, b = await workers.start("a"), await workers.start("b")
    batch = records("st", 30)
    first = await ingest(a, batch)
    assert await ingest(b, batch) == first
    assert await a.metric("itan_samples_total", outcome="learned") == 60
    assert held_by(b) == set()


async def test_the_records_of_a_dead_holder_fail_alone_until_its_lease_ends(workers):
    a, b = await workers.start("a"), await workers.start("b")
    await ingest(a, records("s", 40))
    workers.clock.advance(3)
    await ingest(b, records("st", 1, 1))
    await workers.kill("a")
    answer = await ingest(b, records("st", 1, 2))
    assert answer["stream"] == ["t"]
    assert [(one["record"], one["code"]) for one in answer["problems"]] == [(0, "holder_unreachable")]
    assert await b.metric("itan_forwarded_records_total", outcome="failed") == 1
    assert await b.metric("itan_refused_records_total", code="holder_unreachable") == 1
    refused = await b.http.post("/ingest?retry=true", json=records("st", 1, 3))
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    workers.clock.advance(3)  # though less than a lease has passed since it was heard of
    assert (await ingest(b, records("st", 1, 2)))["seq"] == [42, 2]


async def test_a_holder_that_hangs_is_given_up(workers):
    a, b = await workers.start("a"), await workers.start("b", forward_seconds=0.05)
    await ingest(a, records("s", 3))

    async def hang(_: httpx2.Request) -> None:
        await asyncio.Event().wait()

    workers.network.before["a"] = hang
    answer = await ingest(b, records("st", 1, 1))
    assert answer["stream"] == ["t"]
    assert answer["refused_by_code"] == {"holder_unreachable": 1}


async def test_after_a_lost_answer_a_repeat_is_learned_once(workers):
    a, b = await workers.start("a"), await workers.start("b")
    await ingest(a, records("s", 3))

    async def lose(request: httpx2.Request) -> None:
        raise httpx2.ReadError("connection reset", request=request)

    workers.network.after["a"] = lose
    batch = records("s", 5, 1)
    await b.refused("POST", "/ingest", 503, "holder_unreachable", json=batch)
    del workers.network.after["a"]
    assert (await ingest(b, batch))["seq"] == [4, 5, 6, 7, 8]
    assert await a.metric("itan_samples_total", outcome="learned") == 8


async def test_a_stream_that_has_moved_is_found_again(workers):
    a, b, c = [await workers.start(name) for name in "abc"]
    await ingest(a, records("s", 3))
    await ingest(c, records("s", 3, 1))
    await a.registry.hand_over("s")
    await a.registry.worker.leases.finish()
    await ingest(b, records("s", 1, 2))
    assert held_by(b) == {"s"}
    workers.network.sent.clear()
    assert (await ingest(c, records("s", 2, 3)))["seq"] == [8, 9]
    # by the old holder, which neither passes them on nor takes the stream back, and then by the new one
    assert [request.url.host for request in workers.network.sent] == ["a", "b"]
    assert held_by(b) == {"s"}


async def test_a_holder_does_not_pass_records_on(workers):
    a, b, c = [await workers.start(name) for name in "abc"]
    await ingest(a, records("s", 3))
    workers.clock.advance(2)  # now the holder would hand it over
    given = [Record(0, "s", [1.0, 2.0])]
    _, message = await anext(packed({"s": given}, {"s": UNLIMITED}, None))
    reply = read_reply(await c.app.state.service.forwarder._peers.send("http://b", message))
    assert ([one.code for one in reply.refused], reply.places) == (["stream_elsewhere"], [])
    assert [request.url.host for request in workers.network.sent] == ["b"]
    assert held_by(a) == {"s"}
    assert await workers.store.wanted(a.registry.worker.leases.owner) == set()
    assert held_by(b) == set()


async def test_a_worker_that_is_asked_by_name_still_gets_the_stream(workers):
    """So streams come to be where the proxy leads their own requests."""
    a, b = await workers.start("a"), await workers.start("b")
    await ingest(a, records("s", 3))
    workers.clock.advance(2)
    await b.refused("POST", "/observe?stream=s", 503, "stream_elsewhere", json={"samples": [[1, 1]]})
    await a.registry.worker.leases.hand_over_requested()
    await a.registry.worker.leases.finish()
    await b.observe([[1.0, 1.0]])
    workers.clock.advance(1)
    assert (await ingest(a, records("s", 1, 1)))["seq"] == [5]
    assert held_by(b) == {"s"}


async def test_a_stream_follows_its_records_if_nothing_else_comes_of_it(workers):
    a, b = await workers.start("a"), await workers.start("b")
    await ingest(a, records("st", 3))
    for turn in range(1, 40):
        workers.clock.advance(2)
        for worker in (a, b):
            await worker.registry.worker.leases.renew()
        await ingest(b, records("st", 1, turn))
        if turn < 35:
            await a.observe([[1.0, 1.0]], "t")
        if held_by(b):
            break
    assert (turn, held_by(a), held_by(b)) == (32, {"t"}, {"s"})
    workers.network.sent.clear()
    assert (await ingest(b, records("s", 1, 50)))["seq"] == [36]
    assert workers.network.sent == []


async def test_records_carry_the_id_of_the_request_that_they_came_in(workers):
    a, b = await workers.start("a"), await workers.start("b")
    await ingest(a, records("s", 3))
    await b.http.post("/ingest", json=records("s", 1, 1), headers={"X-Request-ID": "from-the-agent"})
    assert workers.network.sent[0].headers["x-request-id"] == "from-the-agent"


async def test_a_holder_without_an_address_is_asked_for_its_stream(workers):
    a, b = await workers.start("a", advertise_url=""), await workers.start("b")
    await ingest(a, records("s", 3))
    workers.clock.advance(2)
    await b.refused("POST", "/ingest", 503, "stream_elsewhere", json=records("s", 1, 1))
    assert await workers.store.wanted("a") == {"s"}
    assert workers.network.sent == []


async def test_a_stopping_worker_is_asked_for_its_streams(workers):
    a, b = await workers.start("a"), await workers.start("b")
    await ingest(a, records("s", 3))
    await a.app.state.service.tasks.stop()
    workers.clock.advance(2)
    await b.refused("POST", "/ingest", 503, "stream_elsewhere", json=records("s", 1, 1))
    assert await workers.store.wanted(a.registry.worker.leases.owner) == {"s"}
    await a.registry.hand_over("s")
    await a.registry.worker.leases.finish()
    assert (await ingest(b, records("s", 1, 1)))["seq"] == [4]


async def test_a_fault_of_the_holder_is_that_of_its_records(workers):
    a, b = await workers.start("a"), await workers.start("b")
    await ingest(a, records("s", 3))
    a.store.before["append"] = raising(StoreUnavailable("gone"))
    answer = await ingest(b, records("st", 2, 1))
    assert answer["stream"] == ["t", "t"]
    assert {one["code"] for one in answer["problems"]} == {"store_unavailable"}
    assert [one["record"] for one in answer["problems"]] == [0, 2]
    assert await a.metric("itan_store_errors_total", reason="unavailable") == 1
    assert await b.metric("itan_store_errors_total", reason="unavailable") == 0
    assert await a.metric("itan_refused_records_total", code="store_unavailable") == 0
    assert await b.metric("itan_refused_records_total", code="store_unavailable") == 2


async def test_records_of_a_source_make_the_streams_that_it_says(workers):
    a, b = await workers.start("a"), await workers.start("b")
    source = {"stream": "{host}", "features": ["v.*"], "timestamp": "at", "config": {"half_life_samples": 500}}
    await a.accepted("PUT", "/sources/mine", json=source)
    given = [
        {"host": "s", "v": {"x": 1, "y": 2}, "at": workers.clock.now()},
        {"host": "s", "v": {"y": 4, "z": 5}, "at": workers.clock.now()},
    ]
    await ingest(a, given[:1], "?source=mine")
    answer = await ingest(b, given, "?source=mine")
    assert answer["seq"] == [2, 3]
    history = await a.accepted("GET", "/streams/s/history?values=true")
    assert history["values"] == [[1, 2], [1, 2], [None, 4]]
    assert await a.metric("itan_ignored_values_total") == 1
    # who was the holder a moment ago makes the stream anew
    assert (await a.http.delete("/streams/s")).status_code == 204
    await ingest(b, given, "?source=mine")
    assert held_by(a) == {"s"}
    assert (await b.accepted("GET", "/streams/s"))["config"]["half_life_samples"] == 500


async def test_the_limits_of_the_key_are_those_of_the_first_worker(workers):
    keys = "k:observe:x-*,root"
    a, b = [await workers.start(name, api_keys=keys) for name in "ab"]
    root, limited = {"X-API-Key": "root"}, {"X-API-Key": "k"}
    given = [{"stream": stream, "sample": [1, 2]} for stream in ("x-1", "y")]
    assert (await a.http.post("/ingest", json=given, headers=root)).json()["taken"] == 2
    answer = (await b.http.post("/ingest", json=given, headers=limited)).json()
    assert answer["stream"] == ["x-1"]
    assert answer["refused_by_code"] == {"forbidden": 1}
    assert HEADER.lower() in workers.network.sent[0].headers
    assert "x-api-key" not in workers.network.sent[0].headers


async def test_only_workers_with_the_secret_may_send_records(workers, caplog):
    a, b = await workers.start("a"), await workers.start("b", worker_secret="another secret altogether")
    await ingest(a, records("s", 3))
    await b.refused("POST", "/ingest", 503, "holder_unreachable", json=records("s", 1, 1))
    assert "403 not_a_worker" in caplog.text
    assert await a.metric("itan_samples_total", outcome="learned") == 3


@pytest.mark.parametrize("what", ["again", "old", "ahead", "other body", "other worker", "no signature", "not one"])
async def test_a_signature_is_for_one_body_one_worker_and_once(workers, what):
    a, b = await workers.start("a"), await workers.start("b")
    await ingest(a, records("s", 3))
    await ingest(b, records("s", 1, 1))
    sent = workers.network.sent[0]
    signatures = b.app.state.service.signatures
    body, headers = sent.content, {"Content-Type": "application/msgpack"}
    address = "http://c" if what == "other worker" else "http://a"
    if what in ("old", "ahead"):
        workers.clock.wall += -31 if what == "old" else 31
        headers[HEADER] = signatures.sign(address, body)
        workers.clock.wall -= -31 if what == "old" else 31
    elif what == "again":
        headers[HEADER] = sent.headers[HEADER]
    elif what != "no signature":
        headers[HEADER] = "x" if what == "not one" else signatures.sign(address, body)
    content = body + b"\0" if what == "other body" else body
    await a.refused("POST", PATH, 403, "not_a_worker", content=content, headers=headers)
    assert await a.metric("itan_samples_total", outcome="learned") == 4
    headers[HEADER] = signatures.sign("http://a", body)
    assert (await a.http.post(PATH, content=body, headers=headers)).status_code == 200


async def test_a_signed_body_that_is_no_message_is_refused(workers):
    a = await workers.start("a")
    signed = {HEADER: a.app.state.service.signatures.sign("http://a", b"x"), "Content-Type": "application/msgpack"}
    await a.refused("POST", PATH, 422, "invalid_body", content=b"x", headers=signed)


async def test_without_an_address_there_is_no_way_in(service):
    answer = await service.http.post(PATH, content=b"x")
    assert answer.status_code == 404


async def test_streams_are_not_cut_and_messages_are_not_long(workers, monkeypatch):
    monkeypatch.setattr("app.workers.messages.MESSAGE_BYTES", 300)
    a, b = await workers.start("a"), await workers.start("b")
    await ingest(a, records("stuv", 1))
    answer = await ingest(b, records("stuv", 7, 1))
    assert (answer["record"], answer["refused"]) == (list(range(28)), 0)
    assert answer["seq"] == [i // 4 + 2 for i in range(28)]
    assert len(workers.network.sent) == 2


async def test_nothing_is_lost_or_doubled_while_streams_move_under_load(workers):
    services = [await workers.start(name) for name in "abc"]
    streams, total = "stuv", 24
    pending = {stream: records(stream, total) for stream in streams}

    async def send(number: int, stream: str) -> None:
        """Send the records of a stream in order, each until it is taken, at one worker after another."""
        for place, record in enumerate(pending[stream]):
            for attempt in range(200):
                service = services[(number + place + attempt) % 3]
                answer = await service.http.post("/ingest", json=[record])
                if answer.status_code == 200:
                    assert answer.json()["seq"] == [place + 1]
                    break
                assert answer.status_code == 503, answer.text
                await asyncio.sleep(0)
            else:
                raise AssertionError(f"{stream} {place}: never taken: {answer.text}")

    async def move() -> None:
        turn = 0
        while True:
            for _ in range(12):
                await asyncio.sleep(0)
            turn += 1
            for service in services:
                await service.registry.hand_over(streams[turn % 4])

    moving = asyncio.create_task(move())
    await asyncio.gather(*(send(number, stream) for number, stream in enumerate(streams)))
    moving.cancel()
    for service in services:
        assert await service.metric("itan_forwarded_records_total", outcome="answered") > 5
    acquired = [await service.metric("itan_lease_changes_total", change="acquired") for service in services]
    assert sum(acquired) > 2 * len(streams)
    async with Service() as alone:
        for stream in streams:
            for record in pending[stream]:
                await ingest(alone, [record])
            history = f"/streams/{stream}/history"
            ours, theirs = await services[0].accepted("GET", history), await alone.accepted("GET", history)
            assert {name: ours[name] for name in ("seq", "score")} == {name: theirs[name] for name in ("seq", "score")}
