"""One store of each kind, and servers to keep them in."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from app.storage import Store, open_store
from tests.servers import PROGRAMS, ClusterServers, RedisServer, WatchedServers, find_valkey

Servers = RedisServer | WatchedServers | ClusterServers

SERVED: dict[str, Callable[[Path], Servers]] = {
    **{kind: lambda folder, find=find: RedisServer(find(), folder) for kind, find in PROGRAMS.items()},
    "sentinel": lambda folder: WatchedServers(find_valkey(), folder),
    "cluster": lambda folder: ClusterServers(find_valkey(), folder),
}
LASTING = ["sqlite", *SERVED]
"""Kinds of stores that keep what they hold when they are closed."""
KINDS = ["memory", *LASTING]


@pytest.fixture(autouse=True)
def half_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every disk half full: a store on one that is nearly full warns, and this machine's may be."""
    measured = os.statvfs

    def half_full(path: os.PathLike[str]) -> os.statvfs_result:
        block, fragment, blocks, _, _, *others = measured(path)
        return os.statvfs_result((block, fragment, blocks, blocks // 2, blocks // 2, *others))

    monkeypatch.setattr("os.statvfs", half_full)


@pytest.fixture(scope="session")
def shared_servers() -> Iterator[dict[str, Servers]]:
    """Servers that live as long as the session, started when first asked for."""
    servers: dict[str, Servers] = {}
    yield servers
    for server in servers.values():
        server.kill()


@pytest.fixture(scope="session")
def empty_server(shared_servers, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Servers]:
    """Give the shared servers of a kind, with nothing in them."""

    def prepare(kind: str) -> Servers:
        if kind not in shared_servers:
            servers = SERVED[kind](tmp_path_factory.mktemp(kind))
            shared_servers[kind] = servers
            servers.start()
        shared_servers[kind].flush()
        return shared_servers[kind]

    return prepare


@pytest.fixture(params=PROGRAMS)
def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RedisServer]:
    """A server that the test may kill, with an append-only file."""
    server = RedisServer(PROGRAMS[request.param](), tmp_path, "--appendonly", "yes", "--appendfsync", "always")
    server.start()
    yield server
    server.kill()


def url_of(kind: str, folder: Path, empty_server: Callable[[str], Servers]) -> str:
    if kind in SERVED:
        return empty_server(kind).url
    return "memory://" if kind == "memory" else f"sqlite:///{folder}/itan.db"


@pytest.fixture(params=KINDS)
def store_url(request: pytest.FixtureRequest, tmp_path: Path, empty_server) -> str:
    """The URL of an empty store of each kind."""
    return url_of(request.param, tmp_path, empty_server)


@pytest.fixture(params=LASTING)
def lasting_url(request: pytest.FixtureRequest, tmp_path: Path, empty_server) -> str:
    """The URL of an empty store of each kind that does not forget all when it is closed."""
    return url_of(request.param, tmp_path, empty_server)


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """An open, empty store."""
    opened = open_store(store_url)
    await opened.open()
    yield opened
    await opened.close()
