"""Odd and hostile requests over real connections, and big ones beside small ones."""

import asyncio
import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx2
import numpy as np
import pytest

from tests.app.harness import blobs
from tests.integration.process import ServiceProcess

JSON = {"Content-Type": "application/json"}
# of CPU that the service takes meanwhile, whatever else runs on the machine: below 0.1; decoding a big body takes more
LIVE_SECONDS = 0.5
BODY = json.dumps({"samples": [[1.0, 2.0]], "ids": ["a"]}).encode()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """One service for all: a fault that one test leaves behind shows in the next."""
    folder = tmp_path_factory.mktemp("hostile")
    with ServiceProcess(f"sqlite:///{folder}/itan.db", folder) as running:
        yield running
        assert "Traceback" not in running.said()


@pytest.fixture
def http(service: ServiceProcess, request: pytest.FixtureRequest) -> Iterator[httpx2.Client]:
    """A client, and at the end a proof that the service still serves."""
    with httpx2.Client(base_url=service.url, trust_env=False, timeout=60) as client:
        yield client
        assert client.get("/livez").status_code == 200


def head(path: str, *lines: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


def exchange(service: ServiceProcess, *parts: bytes, end: bool = True) -> bytes:
    """Send bytes as they are, and give all that comes back until the other side closes."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            connection.sendall(part)
        received = b""
        with suppress(OSError):  # the service may have closed it first
            if end:
                connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(65536):
                received += chunk
        return received


def statuses(received: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", received)]


def test_a_body_that_comes_byte_by_byte(service, http):
    lines = ("Content-Type: application/json", f"Content-Length: {len(BODY)}", "Connection: close")
    received = exchange(service, head("/observe?stream=slow", *lines), *(bytes([byte]) for byte in BODY), end=False)
    assert received.startswith(b"HTTP/1.1 200")
    assert b'"seq":[1]' in received


@pytest.mark.parametrize(
    "lines",
    [
        (f"Content-Length: {len(BODY) + 1}",),
        (f"Content-Length: {len(BODY) - 1}", "Connection: close"),
        ("Content-Length: -1",),
        ("Content-Length: 1e3",),
        ("Content-Length: 5", "Content-Length: 7"),
        (f"Content-Length: {len(BODY)}", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked",),
    ],
)
def test_a_length_that_is_a_lie_changes_nothing(service, http, lines):
    received = exchange(service, head("/observe?stream=liar", "Content-Type: application/json", *lines), BODY)
    assert b" 200 " not in received
    assert http.get("/streams/liar").status_code == 404


def test_a_body_said_to_be_too_long_is_refused_before_it_comes(service, http):
    request = head("/observe?stream=s", "Content-Type: application/json", "Content-Length: 50000000")
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
        connection.sendall(request)
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")


def test_requests_one_after_another_on_one_connection_are_answered_in_order(service, http):
    lines = ("Content-Type: application/json", f"Content-Length: {len(BODY)}")
    one = head("/observe?stream=pipe", *lines) + BODY
    last = head("/streams/pipe", "Connection: close", method="GET")
    received = exchange(service, one + head("/nowhere", method="GET") + one * 3 + last, end=False)
    assert statuses(received) == [200, 404, 200, 200, 200, 200]
    assert received.count(b'"seq":[1]') == 4
    assert b'"n_seen":1,' in received


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize("path", ["/observe?stream=s", "/streams/s/reset", "/livez"])
def test_other_methods_are_refused(http, method, path):
    is_head_of_get = (method, path) == ("HEAD", "/livez")
    assert http.request(method, path).status_code in ((200,) if is_head_of_get else (400, 405))


def test_a_very_long_address_is_refused(service, http):
    for path in ("/observe?stream=" + "x" * 60_000, "/streams/" + "%2e" * 20_000, "/" + "a/" * 30_000):
        assert exchange(service, head(path, "Connection: close", method="GET"))[9:12] in (b"400", b"404", b"405")
    assert exchange(service, b"GET /" + b"x" * 10**6 + b" HTTP/1.1\r\n\r\n")[9:10] == b"4"


NAMES = [
    "é",
    "e\u0301",
    "\U0001f600",
    "a b",
    "\u202eabc",
    "\u200b",
    "İ",
    "ß",
    "\ufeff",
    "[{,:}]",
    "' OR 1=1",
    "\\u0000",
]


def test_ids_and_names_of_any_script_stay_apart(http):
    printable = [name for name in NAMES if name.isprintable()]
    rows = [{name: float(i) for i, name in enumerate(printable)}] * len(NAMES)
    body = {"samples": rows, "ids": NAMES}
    first = http.post("/observe?stream=unicode", json=body)
    assert first.status_code == 200, first.text
    assert first.json()["ids"] == NAMES
    assert http.post("/observe?stream=unicode", json=body).json()["seq"] == list(range(1, len(NAMES) + 1))
    labels = [{"id": name, "anomaly": False} for name in NAMES]
    assert http.post("/feedback?stream=unicode", json={"labels": labels}).json()["outcomes"]["applied"] == len(NAMES)
    features = http.get("/streams/unicode").json()["config"]["features"]
    assert [feature["name"] for feature in features] == printable


@pytest.mark.parametrize(
    "text", ['"\\ud800"', '"\\u0000"', '"a\\nb"', '""', '"' + "x" * 100_000 + '"', '"\\udc00\\ud800"']
)
def test_ids_that_cannot_be_kept_are_refused(http, text):
    body = f'{{"samples": [[1, 2]], "ids": [{text}]}}'.encode()
    assert http.post("/observe?stream=odd", content=body, headers=JSON).status_code in (400, 422)
    assert http.get("/streams/odd").status_code == 404


class Probe:
    """What small requests wait for while something big is done: in CPU time of the service, and in seconds."""

    def __init__(self, service: ServiceProcess, client: httpx2.AsyncClient) -> None:
        self.service, self.client, self.livez, self.observe = service, client, [0.0], [0.0]
        self.is_over = asyncio.Event()

    async def live(self) -> None:
        while not self.is_over.is_set():
            began = self.service.cpu_seconds()
            assert (await self.client.get("/livez")).status_code == 200
            self.livez.append(self.service.cpu_seconds() - began)
            await asyncio.sleep(0.1)

    async def post(self) -> None:
        while not self.is_over.is_set():
            began = time.perf_counter()
            assert (await self.client.post("/observe?stream=small", json={"samples": [[1, 2]]})).status_code == 200
            self.observe.append(time.perf_counter() - began)
            await asyncio.sleep(0.01)


async def beside(
    service: ServiceProcess, client: httpx2.AsyncClient, path: str, content: bytes, media: str = "application/json"
) -> int:
    """Send something big, check what the small ones saw meanwhile, and give the status."""
    probe = Probe(service, client)
    tasks = [asyncio.create_task(probe.live()), asyncio.create_task(probe.post())]
    answer = await client.post(path, content=content, headers={"Content-Type": media})
    probe.is_over.set()
    await asyncio.gather(*tasks)
    print(path, len(content), answer.status_code, "livez", max(probe.livez), "p99", np.quantile(probe.observe, 0.99))
    assert max(probe.livez) < LIVE_SECONDS
    return answer.status_code


async def test_big_requests_do_not_stop_small_ones(service):
    ids = [f"i{i}" for i in range(10_000)]
    batch = json.dumps({"samples": blobs(10_000, 20).tolist(), "ids": ids}).encode()
    labels = json.dumps({"labels": [{"id": name, "anomaly": i % 50 == 0} for i, name in enumerate(ids)]}).encode()
    async with httpx2.AsyncClient(base_url=service.url, trust_env=False, timeout=120) as client:
        for path, content in (("/observe", batch), ("/observe", batch), ("/feedback", labels), ("/feedback", labels)):
            assert await beside(service, client, f"{path}?stream=big", content) == 200
        assert (await client.get("/streams/big")).json()["n_seen"] == 10_000


@pytest.mark.parametrize(
    ("path", "content", "media"),
    [
        ("/observe", b'{"samples": [' + b"[1,2]," * 999_999 + b"[1,2]]}", "application/json"),
        ("/observe", b'{"samples": [' + b"[1]," * 3_999_999 + b"[1]]}", "application/json"),
        ("/observe", b'{"samples": [' + b'{"a":1},' * 1_999_999 + b'{"\\u0062":1}]}', "application/json"),
        ("/observe", b"[1]\n" * 4_000_000, "application/x-ndjson"),
        ("/density", b'{"points": [' + b"[1]," * 3_999_999 + b"[1]]}", "application/json"),
        ("/feedback", b'{"labels": [' + b'{"seq":1,"anomaly":true},' * 599_999 + b'{"seq":1,"anomaly":true}]}', ""),
    ],
    ids=["a million", "four million", "objects", "lines", "points", "labels"],
)
async def test_far_too_many_are_refused_at_once(service, path, content, media):
    async with httpx2.AsyncClient(base_url=service.url, trust_env=False, timeout=120) as client:
        assert await beside(service, client, f"{path}?stream=big", content, media or "application/json") == 413
