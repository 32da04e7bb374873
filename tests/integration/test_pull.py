"""`itan pull prometheus` between a real Prometheus with a past and a real service."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.deploy.prometheus import Prometheus
from tests.forks import Fork
from tests.integration.process import ServiceProcess
from tests.processes import find_program, wait_until

STEP = 60
HOURS = 2
LAST = int(time.time()) // STEP * STEP - 10 * STEP
PAST = range(LAST - HOURS * 3600, LAST + 1, STEP)
GAP = PAST[60:90]
"""When one of the machines was off."""
STALE = 5
"""Minutes for which Prometheus still gives the last value."""
QUERIES = f"""
stream: instance
step: {STEP}s
backfill: 1d
queries:
  work: work_done
  share: work_done / work_limit
"""
LIVE = "stream: instance\nstep: 1s\ndelay: 1s\nbackfill: 60s\nqueries: {seconds: 'process_cpu_seconds_total'}\n"


def work(machine: str, moment: int) -> float:
    return (7 if machine == "b:1" else 3) + moment // STEP % 11 / 4


def is_on(machine: str, moment: int) -> bool:
    return machine == "a:1" or moment not in GAP


def has_value(machine: str, moment: int) -> bool:
    """Tell whether Prometheus knows a value, which may be minutes old."""
    return any(is_on(machine, moment - n * STEP) and moment - n * STEP in PAST for n in range(STALE))


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Give a Prometheus that knows of some hours of two machines, and scrapes itself."""
    folder = tmp_path_factory.mktemp("prometheus")
    promtool = find_program("promtool")
    lines = ["# TYPE work_done gauge"]
    limits = ["# TYPE work_limit gauge"]
    for machine in ("a:1", "b:1"):
        on = [moment for moment in PAST if is_on(machine, moment)]
        lines += [f'work_done{{instance="{machine}"}} {work(machine, moment)} {moment}' for moment in on]
        # the limit is missing at first, then infinite shares
        limits += [
            f'work_limit{{instance="{machine}"}} {10 if moment > PAST[40] else 0} {moment}' for moment in on[20:]
        ]
    (folder / "past.txt").write_text("\n".join([*lines, *limits, "# EOF\n"]))
    command = [promtool, "tsdb", "create-blocks-from", "openmetrics", str(folder / "past.txt"), str(folder / "data")]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    with Prometheus({}, folder) as server:
        yield server


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("service")
    with ServiceProcess(f"sqlite:///{folder}/itan.db", folder) as running:
        yield running


class Pulling:
    """Runs the command on a file."""

    def __init__(self, folder: Path, prometheus: Prometheus, service: ServiceProcess, text: str) -> None:
        path = folder / "queries.yml"
        path.write_text(text)
        self._words = ["pull", "prometheus", "--url", prometheus.url, "--config", str(path), "--service", service.url]
        self._said = folder / "pull.txt"

    def start(self, *more: str) -> Fork:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ITAN_")}
        return Fork([*self._words, *more], kept, self._said)

    def run(self, *more: str) -> tuple[int | None, str]:
        """Run it to its end; give its exit code and what it printed."""
        process = self.start(*more)
        printed = process.communicate(60)
        return process.returncode, printed.decode() + self.said()

    def said(self) -> str:
        return self._said.read_text()


def samples(service: ServiceProcess, stream: str) -> list[tuple[int, list[float | None]]]:
    """Give the samples of a stream in the order in which they were learned."""
    with httpx2.Client(trust_env=False) as http:
        answer = http.get(f"{service.url}/streams/{stream}/history?values=true&from=1&points=10000")
    if answer.status_code == 404:
        return []
    found: dict[str, Any] = answer.json()
    return list(zip(map(int, found["time"]), found["values"], strict=True))


def test_the_past_becomes_samples_and_a_second_run_adds_nothing(
    tmp_path: Path, prometheus: Prometheus, service: ServiceProcess
) -> None:
    pulling = Pulling(tmp_path, prometheus, service, QUERIES)
    code, said = pulling.run("--once")
    assert code == 0, said
    for machine in ("a:1", "b:1"):
        found = samples(service, machine)
        # versions differ about the moment just five minutes after the last value
        times = [moment for moment, _ in found if moment not in (GAP[STALE - 1], LAST + STALE * STEP)]
        expected = range(PAST[0], LAST + STALE * STEP, STEP)
        kept = [moment for moment in expected if has_value(machine, moment) and moment != GAP[STALE - 1]]
        assert times == kept
        values = dict(found)
        for moment in [moment for moment in PAST if is_on(machine, moment)]:
            done, share = values[moment]
            assert done == work(machine, moment)
            assert share == (work(machine, moment) / 10 if moment > PAST[40] else None)
    assert "values not finite" in said
    before = {machine: samples(service, machine) for machine in ("a:1", "b:1")}
    code, said = pulling.run("--once")
    assert (code, "0 samples sent" in said) == (0, True), said
    assert {machine: samples(service, machine) for machine in before} == before


def test_it_follows_and_continues_after_a_kill_and_ends_on_a_signal(
    tmp_path: Path, prometheus: Prometheus, service: ServiceProcess
) -> None:
    pulling = Pulling(tmp_path, prometheus, service, LIVE)
    stream = prometheus.url.removeprefix("http://")
    wait_until(lambda: prometheus.query("process_cpu_seconds_total") != [])
    first = pulling.start()
    wait_until(lambda: len(samples(service, stream)) >= 2)
    first.kill()
    first.communicate(30)
    n_before, began = len(samples(service, stream)), time.time()
    wait_until(lambda: time.time() > began + 1.5)
    second = pulling.start()
    wait_until(lambda: len(samples(service, stream)) >= n_before + 3)
    second.terminate()
    printed = second.communicate(30)
    assert second.returncode == 0, pulling.said()
    assert b"samples sent" in printed
    times = [moment for moment, _ in samples(service, stream)]
    assert times == list(range(times[0], times[0] + len(times)))


def test_a_wrong_query_ends_it_with_the_words_of_prometheus(
    tmp_path: Path, prometheus: Prometheus, service: ServiceProcess
) -> None:
    code, said = Pulling(tmp_path, prometheus, service, LIVE.replace("process_cpu_seconds_total", "rate(x)")).run()
    assert code == 1
    assert "itan: query 'seconds'" in said
    assert "answers 400" in said
    assert "expected type range vector" in said
