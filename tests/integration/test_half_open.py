"""Connections that are begun and not gone on with: they are closed in time, take little memory, and keep nobody out.

ITAN_TEST_CONNECTIONS=3000 opens so many at a time; by default it is a tenth.
"""

import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.integration.process import ServiceProcess
from tests.processes import wait_until

COUNT = int(os.environ.get("ITAN_TEST_CONNECTIONS", "300"))
START = b"POST /observe?stream=s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BEGUN = {
    "nothing": b"",
    "an empty line": b"\r\n",
    "heads": b"GET /livez HTTP/1.1\r\nX: " + b"x" * 60_000,
    "heads of many headers": b"GET /livez HTTP/1.1\r\n" + b"a: b\r\n" * 99,
    "bodies": START + b"Content-Length: 10000000\r\n\r\n" + b" " * 60_000,
    "chunks": START + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 1000,
    "bodies that nobody wants": b"POST /nowhere HTTP/1.1\r\nContent-Length: 10000000\r\n\r\n" + b" " * 60_000,
    "bodies that wait": START + b"Expect: 100-continue\r\nContent-Length: 10000000\r\n\r\n",
}
KILOBYTES = 200
"""Most that one of them may take; what the kernel holds is not counted."""


@contextmanager
def opened(port: int, count: int, begun: bytes) -> Iterator[list[socket.socket]]:
    """Open connections and send this on each."""
    with ExitStack() as stack:
        connections = []
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            connection.sendall(begun)
            connections.append(connection)
        yield connections


def resident_kilobytes(service: ServiceProcess) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{service.pid}/status").read_text())
    assert found is not None
    return int(found[1])


def metric(service: ServiceProcess, series: str) -> float:
    text = httpx2.get(f"{service.url}/metrics", trust_env=False).text
    found = re.search(rf"^{re.escape(series)} (.*)$", text, re.MULTILINE)
    assert found is not None, series
    return float(found[1])


def serves(service: ServiceProcess) -> None:
    """It answers, new connections too, and learns."""
    with httpx2.Client(base_url=service.url, trust_env=False, timeout=10) as client:
        assert client.get("/livez").status_code == 200
        assert client.post("/observe?stream=well", json={"samples": [[1, 2]]}).status_code == 200


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service that waits long enough to be measured."""
    folder = tmp_path_factory.mktemp("patient")
    settings = {"head_seconds": 100, "stall_seconds": 100, "max_connections": COUNT + 100}
    with ServiceProcess("memory://", folder, files=COUNT + 500, **settings) as running:
        yield running


@pytest.mark.parametrize("begun", BEGUN)
def test_they_take_little_memory(patient, begun):
    serves(patient)
    before = resident_kilobytes(patient)
    with opened(patient.port, COUNT, BEGUN[begun]):
        wait_until(lambda: metric(patient, "itan_connections") >= COUNT)
        serves(patient)
        each = (resident_kilobytes(patient) - before) / COUNT
        print(f"{COUNT} connections with {begun}: {each:.1f} kB each")
        assert each < KILOBYTES
    wait_until(lambda: metric(patient, "itan_connections") < 5)
    assert metric(patient, "itan_body_bytes") == 0


@pytest.mark.parametrize("begun", BEGUN)
def test_they_are_closed_in_time(begun, tmp_path):
    settings = {"head_seconds": 1, "stall_seconds": 1, "keep_alive_seconds": 1}
    with ServiceProcess("memory://", tmp_path, files=COUNT + 500, **settings) as service:
        with opened(service.port, COUNT // 3, BEGUN[begun]) as connections:
            wait_until(lambda: metric(service, "itan_connections") < 5, seconds=30)
            for connection in connections[:: COUNT // 15]:
                answer = connection.recv(65536).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
                assert answer[9:12] in (b"", b"408", b"404"), answer
        serves(service)


def test_more_of_them_than_files_keep_nobody_out(tmp_path):
    with ServiceProcess("memory://", tmp_path, files=256) as service:
        for begun in ("nothing", "heads of many headers", "bodies"):
            with opened(service.port, COUNT, BEGUN[begun]):
                began = time.monotonic()
                for _ in range(20):
                    assert httpx2.get(f"{service.url}/livez", trust_env=False, timeout=10).status_code == 200
                print(f"/livez beside {COUNT} with {begun}: {(time.monotonic() - began) / 20 * 1e3:.1f} ms")
            wait_until(lambda: metric(service, "itan_connections") < 5)
            serves(service)
        assert metric(service, 'itan_connections_closed_total{reason="room"}') > 0
        assert metric(service, 'itan_connections_closed_total{reason="full"}') > 0
        assert metric(service, 'itan_connections_closed_total{reason="files"}') == 0
        assert metric(service, "itan_max_connections") == 64


def test_a_limit_beyond_the_files_is_survived(tmp_path):
    with ServiceProcess("memory://", tmp_path, files=256, max_connections=1000) as service:
        with opened(service.port, 300, b""):
            wait_until(lambda: is_answered(service))
        serves(service)
        assert metric(service, 'itan_connections_closed_total{reason="files"}') > 0


def is_answered(service: ServiceProcess) -> bool:
    try:
        return httpx2.get(f"{service.url}/livez", trust_env=False, timeout=10).status_code == 200
    except httpx2.TransportError:
        return False
