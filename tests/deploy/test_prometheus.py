"""deploy/prometheus: valid, every alert proven to fire and to be quiet, and explained in the runbook."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from app.main import create_app
from app.settings import Settings
from tests.deploy.prometheus import CONFIG, FOLDER, RULES, rules
from tests.processes import find_program

ALERTS: dict[str, Any] = {rule["alert"]: rule for rule in rules() if "alert" in rule}
UNIT_TESTS = sorted((FOLDER / "tests").glob("*.yml"))
RUNBOOK = FOLDER.parents[1] / "docs" / "runbook.md"
WATCHDOG = "ItanWatchdog"
OF_NOBODY = {WATCHDOG, "ItanDown", "ItanProxyDown"}
"""Alerts that are about no target in particular."""
PARTS = ["What it means", "How to check", "What to do"]


def promtool(*words: str | Path, given: bytes = b"") -> str:
    done = subprocess.run([find_program("promtool"), *map(str, words)], input=given, capture_output=True)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    return said


def test_configuration_and_rules_are_valid() -> None:
    promtool("check", "config", CONFIG)
    promtool("check", "rules", *RULES)


def test_metrics_are_named_and_described_as_they_should() -> None:
    metrics = create_app(Settings(store="memory://", metrics_streams="a")).state.service.metrics
    assert promtool("check", "metrics", given=metrics.text()) == ""


@pytest.mark.parametrize("path", UNIT_TESTS, ids=lambda path: path.stem)
def test_alerts_fire_and_are_quiet_as_they_should(path: Path) -> None:
    promtool("test", "rules", path)


def test_each_alert_is_tested_both_ways() -> None:
    checks = [
        check
        for path in UNIT_TESTS
        for test in YAML(typ="safe").load(path)["tests"]
        for check in test["alert_rule_test"]
    ]
    assert {check["alertname"] for check in checks if check["exp_alerts"]} == set(ALERTS)
    assert {check["alertname"] for check in checks if not check["exp_alerts"]} == set(ALERTS) - {WATCHDOG}


@pytest.mark.parametrize("name", ALERTS)
def test_each_alert_says_what_is_wrong_and_what_to_do_first_and_leads_to_its_place_in_the_runbook(name: str) -> None:
    alert = ALERTS[name]
    assert alert["labels"] in [
        {"severity": name} for name in (["none"] if name == WATCHDOG else ["critical", "warning"])
    ]
    assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
    assert re.fullmatch(r".+\. First: [a-z].+\.", alert["annotations"]["description"])
    assert name in OF_NOBODY or re.search(r"\{\{.*\$(value|labels)", alert["annotations"]["description"])
    assert alert["annotations"]["runbook_url"] == f"{{{{ $externalLabels.docs }}}}/runbook.md#{name.lower()}"
    section = RUNBOOK.read_text().split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]
    assert re.findall(r"^\*\*(.+?)\.\*\*", section, re.MULTILINE) == PARTS


def test_the_runbook_speaks_of_no_alert_that_is_not_there() -> None:
    assert sorted(re.findall(r"^## (Itan\w+)$", RUNBOOK.read_text(), re.MULTILINE)) == sorted(ALERTS)


def test_each_rule_is_recorded_under_a_name_that_something_uses() -> None:
    used = " ".join(rule["expr"] for rule in rules())
    assert all(rule["record"] in used for rule in rules() if "record" in rule)


def test_the_objectives_are_written_once() -> None:
    exprs = [rule["expr"] for rule in rules() if "itan:slo" in str(rule)]
    assert re.findall(r"0\.99\d*", " ".join(exprs)) == ["0.999", "0.99"]
    assert set(re.findall(r'le="([^"]+)"', " ".join(exprs))) == {"0.5"}


def test_workers_that_are_not_started_are_no_targets() -> None:
    jobs = {job["job_name"]: job for job in YAML(typ="safe").load(CONFIG)["scrape_configs"]}
    assert jobs["itan"]["static_configs"] == [{"targets": ["itan:8000"]}]
    assert [found["names"] for found in jobs["itan"]["dns_sd_configs"]] == [["itan-2", "itan-3"]]
    assert "static_configs" not in jobs["haproxy"]
    assert {"redis", "alertmanager"} < set(jobs)


@pytest.mark.parametrize("job", ["itan", "haproxy"])
def test_what_is_found_by_dns_keeps_its_name_and_a_fixed_target_its_own(job: str) -> None:
    jobs = {job["job_name"]: job for job in YAML(typ="safe").load(CONFIG)["scrape_configs"]}
    (rule,) = jobs[job]["relabel_configs"]
    assert (rule["source_labels"], rule["target_label"]) == (["__meta_dns_name", "__address__"], "instance")
    found = re.fullmatch(rule["regex"], "itan-2;172.18.0.5:8000")
    assert found is not None
    assert found.expand(rule["replacement"].replace("$", "\\")) == "itan-2:8000"
    assert re.fullmatch(rule["regex"], ";itan:8000") is None
