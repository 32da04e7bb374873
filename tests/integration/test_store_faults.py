"""The store of a real service stops, dies, fills up and is locked; the service stays up and goes on by itself."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest
from redis import Redis

from tests.app.harness import blobs
from tests.integration.process import ServiceProcess
from tests.processes import wait_until
from tests.servers import PROGRAMS, ClusterServers, RedisServer, on_first_node

X = blobs(200).tolist()
STREAMS = [f"s{number}" for number in range(6)]
PARTLY = ("--appendonly", "yes", "--cluster-require-full-coverage", "no")
READ = "/observe?stream=s&learn=false"


class Caller:
    """A client of one stream "s", that knows how many samples were acknowledged.

    A sample without an id that was refused is a stray: a server that was only stopped may have taken it all the same.
    """

    def __init__(self, http: httpx2.Client) -> None:
        self.http = http
        self.acknowledged = 0
        self.strays = self.kept_strays = 0

    def observe(self, size: int = 10) -> httpx2.Response:
        start = self.acknowledged
        body = {"samples": (X * 3)[start : start + size], "ids": [f"i{i}" for i in range(start, start + size)]}
        answer = self.http.post("/observe?stream=s", json=body)
        if answer.status_code == 200:
            seqs = answer.json()["seq"]
            self.kept_strays = seqs[0] - start - 1
            assert 0 <= self.kept_strays <= self.strays
            assert seqs == list(range(seqs[0], seqs[0] + size))
            self.acknowledged += size
        return answer

    def label(self) -> httpx2.Response:
        return self.http.post("/feedback?stream=s", json={"labels": [{"seq": 5, "anomaly": True}]})

    def expect_outage(self) -> None:
        """Changes are refused for now, reads of the open stream and probes are answered."""
        for answer in (self.observe(), self.label(), self.observe()):
            assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable"), answer.text
            assert int(answer.headers["retry-after"]) >= 1
        self.expect_reads()
        answer = self.http.get("/readyz")
        assert (answer.status_code, answer.json()["store"]) == (200, "unavailable")

    def expect_reads(self) -> None:
        began = time.perf_counter()
        for _ in range(20):
            assert self.http.get("/livez").status_code == 200
        assert time.perf_counter() - began < 5  # at least 6 if each waited for the store
        for _ in range(3):
            assert self.http.post(READ, json={"samples": X[:2]}).json()["ready"] == [True, True]
            assert self.http.post("/density?stream=s", json={"points": X[:2]}).status_code == 200
            assert self.http.get("/density?stream=s").status_code == 200

    def expect_quick_reads(self) -> None:
        """A state that may be ahead of the log serves reads; they do not wait for the store one after another."""
        assert self.http.post("/observe?stream=s", json={"samples": X[:1]}).status_code == 503
        self.strays += 1
        began = time.perf_counter()
        for _ in range(60):
            assert self.http.post(READ, json={"samples": X[:1]}).status_code == 200
        assert time.perf_counter() - began < 10  # at least 18 if each waited for the store

    def expect_recovery(self) -> None:
        """All goes on, with nothing lost and nothing twice."""
        self.until_accepted(self.observe)
        assert self.until_accepted(self.label).json()["outcome"] in (["applied"], ["duplicate"])
        assert self.http.get("/streams/s").json()["n_seen"] == self.acknowledged + self.kept_strays
        assert self.http.get("/readyz").json()["store"] == "available"
        assert 'itan_replay_mismatches_total{reason="other"} 0.0' in self.http.get("/metrics").text

    def until_accepted(self, call: Callable[[], httpx2.Response]) -> httpx2.Response:
        """Try until the store is back: the first tries may find connections that are not."""
        end = time.monotonic() + 60
        while (answer := call()).status_code == 503:
            assert time.monotonic() < end, answer.text
        assert answer.status_code == 200, answer.text
        return answer


@contextmanager
def calling(store: str, folder: Path) -> Iterator[Caller]:
    with (
        ServiceProcess(store, folder) as service,
        httpx2.Client(base_url=service.url, trust_env=False, timeout=30) as http,
    ):
        caller = Caller(http)
        while caller.acknowledged < 100:
            assert caller.observe().status_code == 200
        yield caller
        assert "Traceback" not in service.said()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Valkey with an append-only file."""
    running = RedisServer(PROGRAMS["valkey"](), tmp_path, "--appendonly", "yes")
    running.start()
    yield running
    running.kill()


def test_redis_stops_dies_and_fills_up(server, tmp_path):
    with calling(server.url + "?socket_timeout=0.3", tmp_path) as caller:
        server.freeze()
        caller.expect_outage()
        caller.expect_quick_reads()
        server.thaw()
        caller.expect_recovery()

        server.kill()
        caller.expect_outage()
        server.start()
        caller.expect_recovery()

        with Redis.from_url(server.url) as admin:
            admin.config_set("maxmemory", 1)
            for answer in (caller.observe(), caller.label()):
                assert answer.status_code in (200, 503), answer.text
            assert caller.observe().status_code == 503
            caller.expect_reads()
            assert caller.http.delete("/streams/none").status_code == 404
            admin.config_set("maxmemory", 0)
        caller.expect_recovery()


def test_a_dead_node_of_a_cluster_takes_only_its_own_streams_along(tmp_path):
    cluster = ClusterServers(PROGRAMS["valkey"](), tmp_path, *PARTLY)
    cluster.start()
    with (
        ServiceProcess(cluster.url, tmp_path) as service,
        httpx2.Client(base_url=service.url, trust_env=False, timeout=30) as http,
    ):
        assert all(send(http, stream, 0).status_code == 200 for stream in STREAMS)
        cluster.servers[0].kill()
        for number in (1, 2):
            expect_only_those_of_the_first_node_to_fail(http, number)
        service.stop()
        service.start()  # by the other nodes that the URL names
        expect_only_those_of_the_first_node_to_fail(http, 3)
        cluster.servers[0].start()
        for stream in on_first_node(STREAMS):
            for number in (1, 2, 3):
                wait_until(lambda stream=stream, number=number: send(http, stream, number).status_code == 200)
        assert all(http.get(f"/streams/{stream}").json()["n_seen"] == 4 for stream in STREAMS)
        assert "Traceback" not in service.said()
    cluster.kill()


def send(http: httpx2.Client, stream: str, number: int) -> httpx2.Response:
    return http.post(f"/observe?stream={stream}", json={"samples": X[number : number + 1], "ids": [str(number)]})


def expect_only_those_of_the_first_node_to_fail(http: httpx2.Client, number: int) -> None:
    for stream in STREAMS:
        answer = send(http, stream, number)
        if stream not in on_first_node(STREAMS):
            assert answer.status_code == 200, answer.text
            continue
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable"), answer.text
        assert int(answer.headers["retry-after"]) >= 1


def test_what_was_deleted_in_redis_is_named_and_never_a_fresh_stream(server, tmp_path):
    gaps = {"snap": "snapshot at 0-0 is missing", "log": "from the snapshot at 0-0 to the head at 10-0 is missing"}
    with (
        ServiceProcess(server.url, tmp_path) as service,
        httpx2.Client(base_url=service.url, trust_env=False, timeout=30) as http,
    ):
        for stream in gaps:
            assert http.post(f"/observe?stream={stream}", json={"samples": X[:10]}).status_code == 200
        service.kill()
        with Redis.from_url(server.url) as admin:
            assert [admin.delete(f"itan:1:{{{key}}}:{key}") for key in gaps] == [1, 1]
        service.start()
        for stream, gap in gaps.items():
            label = http.post(f"/feedback?stream={stream}", json={"labels": [{"seq": 1, "anomaly": True}]})
            again = [http.post(f"/observe?stream={stream}", json={"samples": X[:1]}) for _ in range(2)]
            for answer in (label, http.get(f"/density?stream={stream}"), *again):
                assert (answer.status_code, answer.json()["code"]) == (500, "store_corrupt")
                assert gap in answer.json()["detail"]
            assert http.delete(f"/streams/{stream}").status_code == 204
            assert http.post(f"/observe?stream={stream}", json={"samples": X[:1]}).json()["seq"] == [1]


def test_an_sqlite_file_is_locked_then_full(tmp_path):
    path = tmp_path / "itan.db"
    with calling(f"sqlite:///{path}", tmp_path) as caller:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            caller.expect_outage()
            other.execute("ROLLBACK")
        caller.expect_recovery()
