"""A worker that starts before its store can be used: unready with the reason, then ready by itself."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.forks import Fork
from tests.integration.process import WORDS, ServiceProcess
from tests.processes import find_free_port, wait_until
from tests.servers import PROGRAMS, ClusterServers, RedisServer, WatchedServers, ask, find_valkey, make_folder

KEYS = 2000
LOAD_MICROSECONDS_PER_KEY = 20_000  # 40 s in all, or until the test has seen enough
AOF = ("--appendonly", "yes")
SAMPLE = {"samples": [[1.0, 2.0]]}
ALIVE = {"status": "alive", "store": None, "reason": None, "warnings": [], "damaged_streams": 0}


class LoadingServer(RedisServer):
    """A server that takes seconds to load what it has stored, and is there meanwhile."""

    ready = b"Server initialized"


def get(service: ServiceProcess, path: str) -> tuple[int, dict[str, Any]]:
    answer = httpx2.get(service.url + path, trust_env=False, timeout=20)
    return answer.status_code, answer.json()


def observe(service: ServiceProcess) -> httpx2.Response:
    return httpx2.post(service.url + "/observe?stream=s", json=SAMPLE, trust_env=False, timeout=20)


def expect_unready(service: ServiceProcess, reason: str) -> None:
    """Find the process alive, and nothing else."""
    assert get(service, "/livez") == (200, ALIVE)
    status, health = get(service, "/readyz")
    assert (status, health["status"], health["store"]) == (503, "starting", "unavailable")
    assert reason in health["reason"]
    answer = observe(service)
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
    assert int(answer.headers["retry-after"]) >= 1


def expect_ready_soon(service: ServiceProcess) -> None:
    wait_until(lambda: get(service, "/readyz")[0] == 200)
    assert observe(service).json()["seq"] == [1]
    assert "Traceback" not in service.said()


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_server_that_is_loading_is_waited_for(kind: str, tmp_path: Path) -> None:
    options = ("--key-load-delay", str(LOAD_MICROSECONDS_PER_KEY), "--loading-process-events-interval-bytes", "1024")
    server = LoadingServer(PROGRAMS[kind](), make_folder(tmp_path, "redis"), *options)
    server.start()
    with server.admin() as client:
        wait_until(client.ping)
        client.mset({f"key {number}": "x" * 100 for number in range(KEYS)})
        client.save()
    server.kill()
    server.start()
    try:
        with ServiceProcess(server.url, tmp_path, durability="process") as service:
            expect_unready(service, "loading the dataset")
            with server.admin() as client:
                client.config_set("key-load-delay", 0)
            expect_ready_soon(service)
    finally:
        server.kill()


def test_a_server_that_is_down_is_waited_for(tmp_path: Path) -> None:
    server = RedisServer(find_valkey(), make_folder(tmp_path, "redis"))
    try:
        with ServiceProcess(server.url, tmp_path) as service:
            expect_unready(service, "Connection refused")
            server.start()
            expect_ready_soon(service)
    finally:
        server.kill()


def test_a_primary_that_no_sentinel_reaches_is_waited_for(tmp_path: Path) -> None:
    servers = WatchedServers(find_valkey(), make_folder(tmp_path, "redis"))
    servers.start()
    servers.primary.kill()
    try:
        with ServiceProcess(servers.url, tmp_path) as service:
            expect_unready(service, "")
            wait_until(lambda: "No master" in get(service, "/readyz")[1]["reason"])
            servers.primary.start()
            expect_ready_soon(service)
    finally:
        servers.kill()


def test_a_cluster_that_is_not_formed_is_waited_for(tmp_path: Path) -> None:
    servers = ClusterServers(find_valkey(), make_folder(tmp_path, "redis"))
    try:
        for server in servers.servers:
            server.start()
        with ServiceProcess(servers.url, tmp_path) as service:
            expect_unready(service, "slots")
            for server in servers.servers:
                server.kill()
            servers.start()
            expect_ready_soon(service)
    finally:
        servers.kill()


def test_a_replica_without_its_primary_is_waited_for(tmp_path: Path) -> None:
    missing = ("--replicaof", "127.0.0.1", str(find_free_port()), "--replica-serve-stale-data", "no")
    server = RedisServer(find_valkey(), make_folder(tmp_path, "redis"), *AOF, *missing)
    server.start()
    try:
        with ServiceProcess(server.url, tmp_path, durability="fsync") as service:
            expect_unready(service, "MASTERDOWN")
            ask(server, "REPLICAOF", "NO", "ONE")
            expect_ready_soon(service)
    finally:
        server.kill()


def test_a_replica_does_not_tell_what_its_primary_can_promise(tmp_path: Path) -> None:
    server = RedisServer(find_valkey(), make_folder(tmp_path, "redis"), *AOF, "--replicaof", "127.0.0.1", "1")
    server.start()
    try:
        with ServiceProcess(server.url, tmp_path, durability="fsync") as service:
            expect_unready(service, "replica")
            ask(server, "REPLICAOF", "NO", "ONE")
            expect_ready_soon(service)
    finally:
        server.kill()


MENDED_BY_HAND: dict[str, tuple[Callable[[Path], Any], Callable[[Any], str], str]] = {
    "no password": (
        lambda folder: RedisServer(find_valkey(), folder, "--requirepass", "word"),
        lambda server: server.url,
        "refuses the user or the password",
    ),
    "a wrong password": (
        lambda folder: RedisServer(find_valkey(), folder, "--requirepass", "word"),
        lambda server: server.url.replace("//", "//:other@"),
        "refuses the user or the password",
    ),
    "a Sentinel for a server": (
        lambda folder: WatchedServers(find_valkey(), folder),
        lambda servers: servers.sentinel.url,
        "redis+sentinel://",
    ),
    "a server for a Sentinel": (
        lambda folder: RedisServer(find_valkey(), folder),
        lambda server: f"redis+sentinel://127.0.0.1:{server.port}/itan",
        "unknown command",
    ),
    "a node for a server": (
        lambda folder: ClusterServers(find_valkey(), folder),
        lambda servers: servers.servers[0].url,
        "redis+cluster://",
    ),
    "a server for a Cluster": (
        lambda folder: RedisServer(find_valkey(), folder),
        lambda server: f"redis+cluster://127.0.0.1:{server.port}",
        "no node of a Cluster",
    ),
    "a wrong password for a Cluster": (
        lambda folder: ClusterServers(find_valkey(), folder),
        lambda servers: servers.url.replace("//", "//:other@"),
        "refuses the user or the password",
    ),
}


@pytest.mark.parametrize("case", MENDED_BY_HAND)
def test_what_stays_so_ends_the_start_with_one_line(case: str, tmp_path: Path) -> None:
    make, url, reason = MENDED_BY_HAND[case]
    servers = make(make_folder(tmp_path, "redis"))
    try:
        servers.start()
        service = Fork([*WORDS, "--port", "0", "--store", url(servers)], os.environ, said := tmp_path / "refused.txt")
        stdout, stderr = service.communicate(), said.read_text()
    finally:
        servers.kill()
    assert (service.returncode, stdout) == (1, b""), stderr
    assert stderr.startswith("itan: Redis"), stderr
    assert len(stderr.splitlines()) == 1
    assert reason in stderr
    assert "other" not in stderr
