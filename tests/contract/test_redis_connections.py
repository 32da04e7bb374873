"""A server that asks for a password, speaks TLS or listens on a socket file is reached like any other."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.storage import Entry, Position, Snapshot, StoreUnavailable, open_store
from app.storage.redis.urls import servers_of
from tests.servers import RedisServer, find_free_port, find_redis, find_valkey

START = Snapshot(Position(0, 0), b"start")


def one(seq: int) -> Entry:
    return Entry(Position(seq, 0), b"body", seq, (f"id {seq}",))


def with_password(folder: Path) -> tuple[RedisServer, str]:
    server = RedisServer(find_valkey(), folder, "--requirepass", "w@rd")
    return server, f"redis://:w%40rd@127.0.0.1:{server.port}/1"


def over_a_file(folder: Path) -> tuple[RedisServer, str]:
    path = folder / "redis.sock"
    return RedisServer(find_valkey(), folder, "--unixsocket", str(path)), f"unix://{path}?db=1"


def with_tls(folder: Path) -> tuple[RedisServer, str]:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    make_certificate(key, certificate)
    port = find_free_port()
    files = ("--tls-key-file", str(key), "--tls-cert-file", str(certificate), "--tls-ca-cert-file", str(certificate))
    server = RedisServer(find_redis(), folder, "--tls-port", str(port), *files, "--tls-auth-clients", "no")
    return server, f"rediss://127.0.0.1:{port}/1?ssl_ca_certs={certificate}"


def make_certificate(key: Path, certificate: Path) -> None:
    """Make a certificate of 127.0.0.1 that is its own authority."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    request = [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=itan", "-days", "2"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*request, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)


WAYS: list[Callable[[Path], tuple[RedisServer, str]]] = [with_password, over_a_file, with_tls]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    server, url = request.param(tmp_path)
    server.start()
    yield url
    server.kill()


async def close_connections(url: str) -> None:
    """Close all connections to the server but the one that does it."""
    servers = servers_of(url)
    await servers.open()
    await servers.ask("CLIENT", "KILL", "TYPE", "normal")
    await servers.close()


async def test_a_stream_is_kept_and_goes_on_when_the_connections_are_closed(url: str):
    store = open_store(url)
    await store.open()
    assert await store.create("s", START)
    await store.append("s", Position(0, 0), one(1))
    await close_connections(url)
    await store.append("s", Position(1, 0), one(2))
    assert await store.load("s") == (START, Position(2, 0))
    assert await store.entries("s", Position(0, 0), 9) == [one(1), one(2)]
    await store.close()


async def test_a_wrong_password_is_unavailable(tmp_path):
    server, url = with_password(tmp_path)
    server.start()
    for wrong in (url.replace("w%40rd", "other"), server.url):
        store = open_store(wrong)
        with pytest.raises(StoreUnavailable, match="Redis"):
            await store.append("s", Position(0, 0), one(1))
        await store.close()
    server.kill()
