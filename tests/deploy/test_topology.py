"""Three workers behind HAProxy, watched by Prometheus, as docker-compose.yml has them: a replay goes through it all."""

import csv
import json
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
import redis

from core import Detector, DetectorConfig
from tests.app.harness import blobs
from tests.deploy.topology import WORKERS, Topology
from tests.processes import find_free_port, wait_until

STREAMS = [f"plant-{number}" for number in range(12)]
ITAN = [sys.executable, "-m", "app.cli"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topology]:
    with Topology(tmp_path_factory.mktemp("scale")) as topology, httpx2.Client(trust_env=False) as client:
        # a worker counts as there after two checks; until then its streams are at the next one
        wait_until(lambda: workers_in_turn(client, topology.url) == len(WORKERS))
        yield topology


def workers_in_turn(client: httpx2.Client, url: str) -> int:
    """Count the workers that answer what names no stream."""
    answers = [client.get(f"{url}/livez") for _ in range(2 * len(WORKERS))]
    return len({answer.headers.get("x-itan-worker") for answer in answers})


def test_streams_are_spread_and_each_stays_and_is_answered_right(running: Topology) -> None:
    placed = Counter()
    for number, stream in enumerate(STREAMS):
        X = blobs(80, seed=number)
        answers = list(observe(running.url, stream, X))
        (worker,) = {answer.headers["x-itan-worker"] for answer in answers}
        placed[worker] += 1
        scores = [score for answer in answers for score in answer.json()["score"]]
        expected = Detector(DetectorConfig(n_features=2)).observe(X).score
        np.testing.assert_array_equal(np.array(scores, dtype=float), expected)
    assert set(placed) == {"worker1", "worker2", "worker3"}, placed


def test_records_go_to_the_workers_that_hold_their_streams_and_nobody_else_may_send_them(running: Topology) -> None:
    streams = [f"fleet-{number}" for number in range(6)]
    with httpx2.Client(trust_env=False) as client:
        for stream in streams:
            client.post(f"{running.url}/observe?stream={stream}", json={"samples": [[1.0, 2.0]]}).raise_for_status()
        worker = f"http://127.0.0.1:{running.ports['itan:8000']}"
        given = [{"stream": stream, "sample": [3.0, 4.0]} for stream in streams]
        answer = client.post(f"{worker}/ingest", json=given).json()
        assert (answer["seq"], answer["refused"]) == ([2] * 6, 0)
        sent = re.search(r'itan_forwarded_records_total{outcome="answered"} (\d)', client.get(f"{worker}/metrics").text)
        assert sent is not None
        assert 0 < int(sent[1]) <= 6
        assert client.post(f"{worker}/workers/v1/records", content=b"x").status_code == 403
        assert client.post(f"{running.url}/workers/v1/records", content=b"x").status_code == 404


def observe(url: str, stream: str, X: np.ndarray) -> Iterator[httpx2.Response]:
    """Send samples in batches of unlike sizes; some name the stream percent-encoded."""
    with httpx2.Client(trust_env=False) as client:
        for number, rows in enumerate(np.split(X, [1, 8, 40])):
            name = stream.replace("-", "%2D") if number % 2 else stream
            answer = client.post(f"{url}/observe?stream={name}", json={"samples": rows.tolist()})
            assert answer.status_code == 200, answer.text
            yield answer


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "labelled.csv"
    X = blobs(240, seed=5)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "label"])
        writer.writerows([*row, int(max(row) > 12)] for row in X.tolist())
    return path


def replay(table: Path, *where: str) -> dict[str, Any]:
    words = ["--stream", "replayed", "--label-column", "label", "--label-delay", "20", "--label-every", "10", "--json"]
    done = subprocess.run([*ITAN, "replay", str(table), *words, *where], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_a_replay_through_it_fares_as_one_beside_it(running: Topology, table: Path) -> None:
    told = ("auc", "average_precision", "flags", "false_alarms", "misses", "cost", "threshold")
    through, beside = replay(table, "--url", running.url), replay(table, "--local")
    same = {name for name in told if name in beside}
    assert len(same) >= 5, beside
    assert {name: through[name] for name in same} == {name: beside[name] for name in same}


def test_prometheus_sees_every_worker_and_what_stands_around_them(running: Topology) -> None:
    targets = [*(f"{name}:8000" for name in WORKERS), "haproxy:8405", "redis-exporter:9121", "alertmanager:9093"]
    expected = {f"127.0.0.1:{running.ports[place]}" for place in targets}
    wait_until(lambda: expected <= up(running.prometheus_url), 60)


@pytest.mark.parametrize("name", ["haproxy", "prometheus", "alertmanager"])
def test_health_checks_pass_and_can_fail(running: Topology, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert running.is_healthy(name)
    monkeypatch.setattr(running, "ports", dict.fromkeys(running.ports, find_free_port()))
    assert not running.is_healthy(name)


def test_prometheus_tells_alertmanager(running: Topology) -> None:
    expected = f"http://127.0.0.1:{running.ports['alertmanager:9093']}/api/v2/alerts"
    url = f"{running.prometheus_url}/api/v1/alertmanagers"
    wait_until(lambda: [{"url": expected}] == httpx2.get(url).json()["data"]["activeAlertmanagers"])


def up(url: str) -> set[str]:
    """Give the targets that answered their last scrape."""
    query = urllib.parse.quote("up == 1")
    with urllib.request.urlopen(f"{url}/api/v1/query?query={query}") as answer:
        found = json.load(answer)["data"]["result"]
    return {series["metric"]["instance"] for series in found}


def test_redis_keeps_a_log_and_evicts_nothing(running: Topology) -> None:
    with redis.Redis(port=running.ports["redis:6379"]) as client:
        settings = client.config_get("maxmemory-policy", "appendonly", "appendfsync")
    assert settings == {"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "everysec"}


def test_a_request_is_followed_from_the_proxy_to_the_line_of_its_worker(running: Topology) -> None:
    with httpx2.Client(trust_env=False) as client:
        answer = client.delete(f"{running.url}/streams/nowhere")
    (request_id,) = answer.headers.get_list("x-request-id")
    worker = WORKERS[int(answer.headers["x-itan-worker"].removeprefix("worker")) - 1]
    wait_until(lambda: request_id in running.said(worker))
    lines = [json.loads(line) for line in running.said(worker).splitlines() if request_id in line]
    assert [(line["worker"], line["stream"], line["problem"]) for line in lines] == [
        (worker, "nowhere", "unknown_stream")
    ]
