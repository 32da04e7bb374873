"""deploy/alertmanager: valid with all receivers filled in; alerts go where they should; one fault is one message."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest
from ruamel.yaml import YAML

from app.notices.notice import trial_notice
from app.notices.posts import alert
from app.notices.rule import Rule
from tests.deploy.prometheus import rules
from tests.deploy.surroundings import DEPLOY, Surroundings
from tests.processes import find_program, wait_until

CONFIG = DEPLOY / "alertmanager" / "alertmanager.yml"
INCIDENT = alert(Rule(target="alertmanager", url="http://alertmanager:9093"), trial_notice("r", "web-1", 0), 0)[
    "labels"
]
SEVERE, MILD = INCIDENT | {"severity": "critical"}, INCIDENT | {"severity": "warning"}
SEVERITIES: dict[str, str] = {rule["alert"]: rule["labels"]["severity"] for rule in rules() if "alert" in rule}
RECEIVERS = {"critical": "on-call", "warning": "operators", "none": "watchdog"}


def amtool(*words: str) -> str:
    done = subprocess.run([find_program("amtool"), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_the_configuration_is_valid() -> None:
    assert "SUCCESS" in amtool("check-config", str(CONFIG))


def test_the_receivers_to_fill_in_are_valid(tmp_path: Path) -> None:
    """Debian's Alertmanager is too old to read the URL of a webhook from a file."""
    head, receivers = CONFIG.read_text().split("\nreceivers:\n")
    filled_in = re.sub(r"^    # ", "    ", receivers, flags=re.MULTILINE)
    path = tmp_path / "alertmanager.yml"
    path.write_text(f"{head}\nreceivers:\n{re.sub('url_file: .*watchdog', 'url: http://watchdog', filled_in)}")
    amtool("check-config", str(path))
    found = YAML(typ="safe").load(path)["receivers"]
    assert [receiver["name"] for receiver in found] == ["operators", "on-call", "streams", "watchdog"]
    assert all(len(receiver) == 2 for receiver in found)


@pytest.mark.parametrize("labels", [SEVERE, MILD])
def test_incidents_have_a_route_of_their_own(labels: dict[str, str]) -> None:
    assert receiver_of(labels) == "streams"


@pytest.mark.parametrize("severity", RECEIVERS)
def test_alerts_go_where_their_severity_says(severity: str) -> None:
    name = next(name for name, found in SEVERITIES.items() if found == severity)
    assert receiver_of({"alertname": name, "severity": severity}) == RECEIVERS[severity]


def receiver_of(labels: dict[str, str]) -> str:
    given = [f"{name}={value}" for name, value in labels.items()]
    return amtool("config", "routes", "test", f"--config.file={CONFIG}", *given)


def test_the_rules_for_silence_name_alerts_that_exist() -> None:
    for inhibition in YAML(typ="safe").load(CONFIG)["inhibit_rules"]:
        for matcher in (*inhibition["source_matchers"], *inhibition["target_matchers"]):
            name, operator, value = re.fullmatch(r'(\w+)(=~?)"(.*)"', matcher).groups()  # type: ignore[union-attr]
            if name == "alertname" and value != INCIDENT["alertname"]:
                assert all(any(re.fullmatch(part, alert) for alert in SEVERITIES) for part in value.split("|")), value
            assert operator == "=~" or "|" not in value


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ExitStack() as stack:
        yield f"http://{Surroundings(tmp_path_factory.mktemp('alertmanager'), stack).alertmanager()}/api/v2/alerts"


CASES = [
    ("every worker is down", ["ItanDown", "ItanProxyNoWorkers", "ItanErrorBudgetBurnsFast"], ["ItanDown"]),
    (
        "Redis is down",
        ["ItanRedisDown", "ItanStoreErrors", "ItanRequestsFail", "ItanSnapshotTooOld", "ItanErrorBudgetBurnsFast"],
        ["ItanRedisDown"],
    ),
    ("Redis is full", ["ItanStoreRefusesWrites", "ItanStoreFillsUp", "ItanRequestsFail"], ["ItanStoreRefusesWrites"]),
    ("one worker is down", ["ItanWorkerDown", "ItanProxyWorkerOut"], ["ItanWorkerDown"]),
    (
        "the watchdog goes on",
        ["ItanWatchdog", "ItanDown", "ItanRedisDown"],
        ["ItanDown", "ItanRedisDown", "ItanWatchdog"],
    ),
]


@pytest.mark.parametrize(("fault", "firing", "told"), CASES, ids=[case[0] for case in CASES])
def test_one_fault_is_one_message(alertmanager: str, fault: str, firing: list[str], told: list[str]) -> None:
    shared = {"slo": "availability", "fault": fault}
    assert (
        told_of(alertmanager, [shared | {"alertname": name, "severity": SEVERITIES[name]} for name in firing]) == told
    )


def test_a_severe_incident_silences_the_mild_alert_of_the_same_stream_alone(alertmanager: str) -> None:
    elsewhere = MILD | {"stream": "web-2"}
    assert told_of(alertmanager, [SEVERE, MILD, elsewhere]) == [INCIDENT["alertname"]] * 2


def told_of(url: str, alerts: list[dict[str, str]]) -> list[str]:
    """Let only these alerts fire, and give the names of those that nothing silences."""
    given = [{"labels": labels} for labels in alerts]
    httpx2.post(url, json=given).raise_for_status()
    wait_until(lambda: len(httpx2.get(url).json()) == len(alerts))
    found = httpx2.get(url, params={"inhibited": "false"}).json()
    httpx2.post(
        url, json=[one | {"endsAt": "2001-01-01T00:00:00Z", "startsAt": "2000-01-01T00:00:00Z"} for one in given]
    )
    wait_until(lambda: not httpx2.get(url).json())
    return sorted(one["labels"]["alertname"] for one in found)
