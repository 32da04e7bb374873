"""Watching a stream over HTTP: slow watchers, too many of them, the end of the service and its return."""

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from tests.integration.process import ServiceProcess
from tests.servers import RedisServer

PATIENCE = 60.0
SAMPLES = np.random.default_rng(0).normal(size=(200, 4)).tolist()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    with ServiceProcess(f"sqlite:///{tmp_path}/itan.db", tmp_path, max_watchers=3) as running:
        post(running.url, SAMPLES)
        yield running


def post(url: str, samples: list[list[float]]) -> None:
    answer = httpx2.post(f"{url}/observe?stream=s", json={"samples": samples}, trust_env=False, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text


class Watcher:
    """A client of the event stream."""

    def __init__(self, url: str, last_event_id: str | None = None) -> None:
        self._http = httpx2.Client(base_url=url, trust_env=False, timeout=PATIENCE)
        headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        self._asked = self._http.stream("GET", "/streams/s/events", headers=headers)
        self.answer = self._asked.__enter__()
        self._lines = self.answer.iter_lines()
        self.last_event_id = last_event_id

    def next(self, wanted: str) -> dict[str, Any]:
        """Give the data of the next event of a kind, as a browser would."""
        name = ""
        for line in self._lines:
            field, _, value = line.partition(": ")
            if field == "id":
                self.last_event_id = value
            elif field == "event":
                name = value
            elif field == "data" and name == wanted:
                return json.loads(value)
        raise EOFError

    def close(self) -> None:
        self._asked.__exit__(None, None, None)
        self._http.close()


def test_open_watchers_do_not_keep_the_service_from_its_end(service: ServiceProcess) -> None:
    watchers = [Watcher(service.url) for _ in range(3)]
    for watcher in watchers:
        watcher.next("model")
    start = time.monotonic()
    assert service.stop() == 0
    assert time.monotonic() - start < 10  # it waits 20 seconds for requests that do not end
    for watcher in watchers:
        with pytest.raises(EOFError):
            watcher.next("samples")
        watcher.close()
    assert "Traceback" not in service.said()


def test_a_watcher_goes_on_where_it_was_when_the_service_is_back(service: ServiceProcess) -> None:
    watcher, seqs = Watcher(service.url), []
    watcher.next("model")
    post(service.url, SAMPLES[:3])
    while len(seqs) < 3:
        seqs += watcher.next("samples")["seq"]
    service.kill()
    watcher.close()
    service.start()
    post(service.url, SAMPLES[:5])
    again = Watcher(service.url, watcher.last_event_id)
    post(service.url, SAMPLES[:2])
    while len(seqs) < 10:
        seqs += again.next("samples")["seq"]
    assert seqs == list(range(201, 211))
    again.close()


def test_more_watchers_than_there_may_be_are_told(service: ServiceProcess) -> None:
    watchers = [Watcher(service.url) for _ in range(3)]
    for watcher in watchers:
        watcher.next("model")
    refused = httpx2.get(f"{service.url}/streams/s/events", trust_env=False)
    assert (refused.status_code, refused.json()["code"]) == (503, "too_many_watchers")
    assert refused.headers["retry-after"]
    watchers[0].close()
    ends = time.monotonic() + PATIENCE
    while (late := Watcher(service.url)).answer.status_code != 200:
        late.close()
        assert time.monotonic() < ends
    late.next("model")
    for watcher in (*watchers[1:], late):
        watcher.close()


def resident_mb(service: ServiceProcess) -> float:
    status = Path(f"/proc/{service.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) / 1024


def test_watchers_that_do_not_read_cost_no_memory(service: ServiceProcess) -> None:
    post(service.url, SAMPLES * 10)
    deaf = []
    for _ in range(3):
        deaf.append(socket.create_connection(("127.0.0.1", service.port)))
        deaf[-1].sendall(b"GET /streams/s/events?after=0-0&values=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
    before = resident_mb(service)
    sent = 0
    for _ in range(40):
        post(service.url, SAMPLES * 10)
        sent += 2000 * 4 * 60
    # held for each watcher it would be three times what was sent, less what the sockets hold: 8 MB are usual, 30 then
    assert resident_mb(service) - before < sent / 2**20
    for connection in deaf:
        connection.close()


def test_what_another_worker_learns_is_seen(redis_server: RedisServer, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    with ServiceProcess(redis_server.url, folders[0]) as a, ServiceProcess(redis_server.url, folders[1]) as b:
        post(a.url, SAMPLES)
        watcher = Watcher(b.url)
        watcher.next("model")
        post(a.url, SAMPLES[:2])
        seqs: list[int] = []
        while len(seqs) < 2:
            seqs += watcher.next("samples")["seq"]
        assert seqs == [201, 202]
        watcher.close()
