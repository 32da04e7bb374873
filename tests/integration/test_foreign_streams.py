"""No spelling of a path, query or header shows a key the streams of another."""

import socket
from collections.abc import Iterator
from itertools import product

import httpx2
import pytest

from tests.integration.process import ServiceProcess

SECRET = {"theirs_x": 7712345.25, "theirs_y": 1.0}
NAMES = [
    *(
        "theirs-1",
        "%74heirs-1",
        "theirs%2D1",
        "theirs-1%2Fhistory",
        "theirs-1%00",
        "theirs-1%20",
        "THEIRS-1",
        "theirs-1.",
    ),
    *(
        "ours-1%2F..%2Ftheirs-1",
        "ours-1/../theirs-1",
        "ours-1//../theirs-1",
        "%2e%2e/theirs-1",
        "./theirs-1",
        "//theirs-1",
    ),
    *("ours-1%5C..%5Ctheirs-1", "ours-1%00theirs-1", "ours-1;/theirs-1", "theirs-1;ours-1", "ours-1?stream=theirs-1"),
    *("%EF%BD%94heirs-1", "theirs-1%0d%0aX-API-Key:all", "*", "theirs-*", "ours-1%3Fstream=theirs-1"),
]
TAILS = ["", "/check", "/history?values=true", "/samples/1", "/review", "/export", "/events?after=0-0&values=true"]
QUERIES = [
    *(
        "stream=theirs-1",
        "stream=ours-1&stream=theirs-1",
        "stream=theirs-1&stream=ours-1",
        "stream=ours-1;stream=theirs-1",
    ),
    *(
        "stream=ours-1%26stream=theirs-1",
        "Stream=theirs-1&stream=ours-1",
        "stream=%74heirs-1",
        "stream=ours-1%0Atheirs-1",
    ),
    *("stream[]=theirs-1&stream=ours-1", "stream=ours-1%00theirs-1", "stream=ours-1/../theirs-1"),
]
TARGETS = [
    *(f"/streams/{name}{tail}" for name, tail in product(NAMES, TAILS)),
    *(f"/density?{query}" for query in QUERIES),
    *(f"/density/grid?{query}&x=theirs_x&y=theirs_y" for query in QUERIES),
    *(
        "/streams?limit=1000&details=true",
        "/streams?after=theirs-0",
        "/metrics",
        "/readyz",
        "/session",
        "//streams/theirs-1",
    ),
    *("/streams/ours-1/../../streams/theirs-1", "/ui/../streams/theirs-1", "/ui/..%2fstreams%2ftheirs-1"),
    *("http://127.0.0.1/streams/theirs-1", "http://theirs-1/streams/theirs-1/history", "/STREAMS/theirs-1"),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("service")
    keys = "all,ours:admin:ours-*"
    with ServiceProcess("memory://", folder, api_keys=keys, metrics_streams="theirs-1") as running:
        for stream in ("ours-1", "theirs-1"):
            answer = httpx2.post(
                f"{running.url}/observe?stream={stream}",
                json={"samples": [SECRET] * 40},
                headers={"X-API-Key": "all"},
                trust_env=False,
            )
            assert answer.status_code == 200, answer.text
        yield running


def ask(service: ServiceProcess, target: str, *headers: str) -> bytes:
    """Send a request just as it is written."""
    lines = [f"GET {target} HTTP/1.1", "Host: localhost", "Connection: close", *headers, "", ""]
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as client:
        client.sendall("\r\n".join(lines).encode())
        said = b""
        while b"event: samples" not in said and (part := client.recv(65536)):
            said += part
        return said


def shows(target: str, said: bytes) -> bool:
    """Tell whether an answer shows anything of the stream but what was asked."""
    status, _, rest = said.partition(b"\r\n")
    return b"7712345" in said or (b" 200 " in status and b"theirs" in rest)


@pytest.mark.parametrize("kind", ["key", "bearer", "cookie", "two keys", "proxy"])
def test_no_spelling_shows_the_stream_of_another(service: ServiceProcess, kind: str) -> None:
    signed_in = httpx2.post(f"{service.url}/session", json={"key": "ours"}, trust_env=False)
    headers = {
        "key": ["X-API-Key: ours"],
        "bearer": ["Authorization: Bearer ours"],
        "cookie": [f"Cookie: itan_session=x; itan_session={signed_in.cookies['itan_session']}"],
        "two keys": ["X-API-Key: ours", "X-API-Key: ours,all"],
        "proxy": ["X-API-Key: ours", "X-Original-URL: /streams/theirs-1", "X-Forwarded-Prefix: /streams/theirs-1"],
    }[kind]
    for target in TARGETS:
        said = ask(service, target, *headers)
        assert not shows(target, said), (target, said)
        assert b" 500 " not in said.partition(b"\r\n")[0], (target, said)


def test_the_key_of_all_sees_it(service: ServiceProcess) -> None:
    for tail in TAILS:
        assert shows(tail, ask(service, f"/streams/theirs-1{tail}", "X-API-Key: all")), tail
