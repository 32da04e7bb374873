"""A store that is full: writes are refused and seen, reads go on, and it heals without a restart."""

import resource
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.app.harness import blobs
from tests.integration.process import ServiceProcess
from tests.servers import RedisServer

X = blobs(400).tolist()
MOST_BYTES = 1_000_000


class Client:
    """Sends batches with ids until they are refused."""

    def __init__(self, url: str) -> None:
        self.http = httpx2.Client(base_url=url, trust_env=False, timeout=30)
        self.acknowledged = 0

    def observe(self) -> httpx2.Response:
        ids = [f"i{self.acknowledged + offset}" for offset in range(100)]
        answer = self.http.post("/observe?stream=s", json={"samples": X[:100], "ids": ids})
        if answer.status_code == 200:
            assert answer.json()["seq"][0] == self.acknowledged + 1
            self.acknowledged += 100
        return answer

    def until_full(self) -> str:
        for _ in range(1_000):
            answer = self.observe()
            if answer.status_code != 200:
                assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable"), answer.text
                return str(answer.json()["detail"])
        raise AssertionError("it never was full")

    def ready(self) -> dict[str, object]:
        answer = self.http.get("/readyz")
        assert answer.status_code == 200
        return dict(answer.json())

    def metric(self, name: str) -> float:
        lines = self.http.get("/metrics").text.splitlines()
        return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    def expect_full(self, cause: str, what: str) -> None:
        ready = self.ready()
        assert ready["store"] == "refusing"
        assert what in str(ready["reason"])
        assert any("full" in warning for warning in list(ready["warnings"]))  # type: ignore[call-overload]
        assert self.metric(f'itan_store_refused_writes_total{{cause="{cause}"}}') >= 1
        assert self.metric("itan_store_used_bytes") > 0.85 * self.metric("itan_store_limit_bytes") > 0
        for _ in range(3):
            read = self.http.post("/observe?stream=s&learn=false", json={"samples": X[:2]})
            assert (read.status_code, read.json()["ready"]) == (200, [True, True])
            assert self.http.get("/density?stream=s").status_code == 200

    def expect_healed(self) -> None:
        for _ in range(3):
            assert self.observe().status_code == 200
        assert self.ready()["store"] == "available"
        assert self.http.get("/streams/s").json()["n_seen"] == self.acknowledged


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    with ServiceProcess(f"sqlite:///{tmp_path}/itan.db", tmp_path) as running:
        yield running


def limit_files(service: ServiceProcess, size_bytes: int) -> None:
    resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))


def test_a_file_that_may_grow_no_more(service: ServiceProcess) -> None:
    client = Client(service.url)
    assert client.observe().status_code == 200
    limit_files(service, MOST_BYTES)
    assert "disk I/O error" in client.until_full()
    client.expect_full("failed", "disk I/O error")
    service.kill()
    service.start()
    limit_files(service, MOST_BYTES)
    assert client.http.get("/streams/s").json()["n_seen"] == client.acknowledged
    limit_files(service, resource.RLIM_INFINITY)
    client.expect_healed()
    client.http.close()


def test_a_redis_at_its_maxmemory(redis_server: RedisServer, tmp_path: Path) -> None:
    with ServiceProcess(redis_server.url, tmp_path) as service, redis_server.admin() as admin:
        client = Client(service.url)
        assert client.observe().status_code == 200
        admin.config_set("maxmemory", int(admin.info("memory")["used_memory"]) + 300_000)
        assert "OOM" in client.until_full()
        client.expect_full("full", "OOM")
        admin.config_set("maxmemory", 0)
        client.expect_healed()
        client.http.close()
