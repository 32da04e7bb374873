"""A real Prometheus scrapes real workers under load, HAProxy and Redis, and answers every panel and every rule."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx2
import numpy as np
import pytest

from tests.app.harness import blobs
from tests.deploy.dashboards import asked, choices
from tests.deploy.prometheus import Prometheus, rules
from tests.deploy.surroundings import Surroundings
from tests.integration.process import ServiceProcess
from tests.processes import wait_until

STREAMS = ("alpha", "beta", "gamma")
BATCH = 60
SECONDS = 60
VARIABLES = {"__rate_interval": "5s", "instance": ".*", "stream": "alpha"}
COMPARISON = re.compile(r" (?:==|!=|<=|>=|<|>) ")


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Give a Prometheus that watches a service under load, HAProxy before it, a Redis with a replica, Alertmanager."""
    folder = tmp_path_factory.mktemp("watched")
    settings = {"metrics_streams": "alpha", "metrics_top_streams": 1, "snapshot_every_seconds": 1}
    with ExitStack() as stack:
        service = stack.enter_context(ServiceProcess(f"sqlite:///{folder}/itan.db", folder, **settings))
        start = Surroundings(folder, stack)
        url, haproxy = start.haproxy(service.url.removeprefix("http://"))
        alertmanager = start.alertmanager()
        targets = {"itan": [service.url.removeprefix("http://")], "haproxy": [haproxy], "redis": [start.redis()]}
        targets |= {"alertmanager": [alertmanager]}
        server = stack.enter_context(Prometheus(targets, folder, alertmanager=alertmanager))
        stack.enter_context(load(url))
        yield server


@contextmanager
def load(url: str) -> Iterator[None]:
    """Send samples, labels and mistakes until the block ends."""
    is_over = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            with httpx2.Client(base_url=url, trust_env=False, timeout=30) as http:
                send(http, is_over)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        assert not failed, failed


def send(http: httpx2.Client, is_over: threading.Event) -> None:
    X = blobs(40 * BATCH, 3)
    for turn in range(10**6):
        rows = np.roll(X, -turn * BATCH, axis=0)[:BATCH].tolist()
        for stream in STREAMS:
            if is_over.wait(0.05):
                return
            talk(http, stream, rows, [f"{turn}-{row}" for row in range(BATCH)])


def talk(http: httpx2.Client, stream: str, rows: list[list[float]], ids: list[str]) -> None:
    """Observe, again, score only, label by size, label wrongly, and ask for something that is not there."""
    answer = http.post(f"/observe?stream={stream}", json={"samples": rows, "ids": ids}).raise_for_status().json()
    http.post(f"/observe?stream={stream}", json={"samples": rows[:1], "ids": ids[:1]}).raise_for_status()
    http.post(f"/observe?stream={stream}&learn=false", json={"samples": rows[:2]}).raise_for_status()
    labels = [{"id": name, "anomaly": max(row) > 13} for name, row in zip(ids, rows, strict=True)][:8]
    flagged = [name for name, is_anomaly in zip(ids, answer["is_anomaly"], strict=True) if is_anomaly]
    labels += [{"id": name, "anomaly": int(name[-1]) < 5} for name in flagged if name not in ids[:8]]
    http.post(f"/feedback?stream={stream}", json={"labels": labels}).raise_for_status()
    assert http.get("/streams/nobody").status_code == 404


def unanswered(prometheus: Prometheus, expressions: list[str]) -> list[str]:
    """Ask until every expression has a number, and give those that have none in time."""
    end = time.monotonic() + SECONDS
    left = expressions
    while left and time.monotonic() < end:
        left = [expr for expr in left if not prometheus.query(expr)]
        time.sleep(0.2)
    return left


def test_every_panel_shows_something(prometheus: Prometheus) -> None:
    expressions = asked(VARIABLES)
    assert len(expressions) > 60
    assert unanswered(prometheus, [one.expr for one in expressions]) == []
    for one in expressions:
        labels = {label for series in prometheus.query(one.expr) for label in series}
        assert labels >= set(one.legend_labels), one


def test_every_variable_has_something_to_choose_from(prometheus: Prometheus) -> None:
    assert choices()
    assert unanswered(prometheus, [f"count by ({label}) ({selector})" for label, selector in choices()]) == []


def test_every_rule_has_something_to_compare(prometheus: Prometheus) -> None:
    """An alert of a healthy service is empty: what it compares, and how it matches labels, must not be."""
    assert unanswered(prometheus, [operands(rule["expr"]) for rule in rules()]) == []


def operands(expr: str) -> str:
    """Take the comparisons out of an expression: both sides stay, and must be there with the same labels.

    >>> operands("a > 5 * b and on (x) c < 1 or (d > 0 unless d offset 1h)")
    'a + 5 * b and on (x) c + 1 and (d + 0 and d)'
    """
    expr = COMPARISON.sub(" + ", expr)
    expr = re.sub(r"absent\(([^()]*)\)", r"sum by (job) (\1)", expr)
    return re.sub(r" offset \w+", "", expr.replace(" unless ", " and ")).replace(" or ", " and ")


def test_prometheus_evaluates_every_rule_and_none_goes_off(prometheus: Prometheus) -> None:
    expected = len(rules())

    def evaluated() -> list[dict[str, Any]]:
        groups = prometheus.ask("rules")["groups"]
        return [rule for group in groups for rule in group["rules"] if rule["health"] == "ok"]

    end = time.monotonic() + SECONDS
    while len(evaluated()) < expected and time.monotonic() < end:
        time.sleep(0.2)
    found = evaluated()
    assert len(found) == expected
    assert [rule["lastError"] for rule in found if rule.get("lastError")] == []
    firing = [alert["labels"] for alert in prometheus.ask("alerts")["alerts"] if alert["state"] == "firing"]
    assert firing == [{"alertname": "ItanWatchdog", "severity": "none"}]


def test_the_watchdog_arrives_with_a_link_that_leads_to_the_runbook(prometheus: Prometheus) -> None:
    url = f"http://{prometheus.alertmanager}/api/v2/alerts"
    wait_until(lambda: bool(httpx2.get(url).json()))
    (watchdog,) = httpx2.get(url).json()
    assert watchdog["labels"] == {"alertname": "ItanWatchdog", "severity": "none"}
    assert [receiver["name"] for receiver in watchdog["receivers"]] == ["watchdog"]
    page, _, anchor = watchdog["annotations"]["runbook_url"].partition("#")
    assert "## ItanWatchdog\n" in httpx2.get(page).raise_for_status().text
    assert anchor == "itanwatchdog"
