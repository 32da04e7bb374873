"""The agents of docs/recipes.md, as far as they can be installed, with the configuration that stands there."""

import re
import time
from pathlib import Path

import httpx2
import pytest

from app.sources.presets import PRESETS
from tests.integration.process import ServiceProcess
from tests.processes import find_free_port, find_program, running, wait_until

RECIPES = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text()
SERIES = {"leeloo:load::load:", "leeloo:memory::memory:free", "leeloo:memory::memory:used"}


def recipe(heading: str) -> str:
    """Give the configuration under a heading."""
    section = RECIPES.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^```\w+\n(.*?)^```", section, re.MULTILINE | re.DOTALL)[0]


@pytest.mark.servers
def test_collectd(tmp_path: Path) -> None:
    program = find_program("collectd")
    with ServiceProcess(f"sqlite:///{tmp_path}/itan.db", tmp_path) as service, httpx2.Client(trust_env=False) as http:
        config = recipe("collectd").replace("http://127.0.0.1:8000", service.url).replace("Interval 10", "Interval 0.1")
        # what it has gathered goes out when its buffer is full
        config = config.replace("StoreRates true", "StoreRates true\n    BufferSize 2048")
        folders = f'BaseDir "{tmp_path}"\nPIDFile "{tmp_path}/collectd.pid"\nFQDNLookup false\n'
        (tmp_path / "collectd.conf").write_text(folders + config)

        def counted(name: str) -> list[float]:
            text = http.get(f"{service.url}/metrics").text
            return [float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (.+)$", text, re.MULTILINE)]

        command = [program, "-f", "-C", str(tmp_path / "collectd.conf")]
        with running(command, tmp_path / "collectd.txt", lambda: sum(counted("itan_samples_total")) > 0):
            wait_until(lambda: sum(counted("itan_samples_total")) > 100)
        names = {one["stream"] for one in http.get(f"{service.url}/streams").json()["streams"]}
        assert names >= SERIES
        described = http.get(f"{service.url}/streams/leeloo:load::load:").json()
        assert [one["name"] for one in described["config"]["features"]] == ["shortterm", "midterm", "longterm"]
        assert abs(described["newest_timestamp"] - time.time()) < 60
        assert set(counted("itan_refused_records_total")) == {0.0}


@pytest.mark.servers
def test_prometheus(tmp_path: Path) -> None:
    program, address = find_program("prometheus"), f"127.0.0.1:{find_free_port()}"
    with ServiceProcess(f"sqlite:///{tmp_path}/itan.db", tmp_path) as service, httpx2.Client(trust_env=False) as http:
        config = recipe("Prometheus").replace("http://127.0.0.1:8000", service.url).replace("15s", "200ms")
        config = config.replace("batch_send_deadline: 5s", "batch_send_deadline: 300ms")
        scraped = f"scrape_configs: [{{job_name: node, static_configs: [{{targets: ['{address}']}}]}}]\n"
        (tmp_path / "prometheus.yml").write_text(config + scraped)
        command = [program, f"--config.file={tmp_path}/prometheus.yml", f"--web.listen-address={address}"]
        command.append(f"--storage.tsdb.path={tmp_path}/data")
        stream = f"{service.url}/streams/node:{address.replace(':', '_3A')}"
        with running(command, tmp_path / "prometheus.txt", lambda: http.get(stream).status_code == 200):
            wait_until(lambda: http.get(stream).json()["n_seen"] > 5)
            failed = http.get(f"http://{address}/metrics").text
        history = http.get(f"{stream}/history?values=true").json()
        assert set(history["features"]) == {"go_goroutines", "process_resident_memory_bytes", "up"}
        whole = [row for row in history["values"] if None not in row]
        assert len(whole) >= len(history["values"]) - 1 > 3
        assert abs(history["time"][-1] - time.time()) < 60
        assert re.findall(r"^prometheus_remote_storage_samples_failed_total{.*} (.+)$", failed, re.MULTILINE) == ["0"]


def test_the_recipes_send_to_sources_that_there_are() -> None:
    named = set(re.findall(r"/ingest\?source=([\w-]+)&answer=counts&retry=true", RECIPES))
    other = {"vector-metrics", "influx", "otlp", "prometheus"}
    assert named == PRESETS.keys() - other
    assert all(f"source={name}" in RECIPES for name in other)
