"""deploy/alertmanager: valid, and each alert goes where it should."""

import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from app.notices.notice import trial_notice
from app.notices.posts import alert
from app.notices.rule import Rule
from tests.processes import find_program

CONFIG = Path(__file__).parents[2] / "deploy" / "alertmanager" / "alertmanager.yml"
LABELS = alert(Rule(target="alertmanager", url="http://alertmanager:9093"), trial_notice("r", "web-1", 0), 0)["labels"]


def amtool(*words: str) -> str:
    done = subprocess.run([find_program("amtool"), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_the_configuration_is_valid() -> None:
    assert "SUCCESS" in amtool("check-config", str(CONFIG))


@pytest.mark.parametrize(
    ("labels", "receiver"), [(LABELS, "streams"), ({"alertname": "ItanDown", "severity": "critical"}, "operators")]
)
def test_incidents_have_a_route_of_their_own(labels: dict[str, str], receiver: str) -> None:
    given = [f"{name}={value}" for name, value in labels.items()]
    assert amtool("config", "routes", "test", f"--config.file={CONFIG}", *given) == receiver


def test_a_severe_incident_silences_the_mild_alert_of_the_same_stream_alone() -> None:
    (inhibition,) = YAML(typ="safe").load(CONFIG)["inhibit_rules"]
    assert set(inhibition["equal"]) < set(LABELS)
    assert LABELS["alertname"] in inhibition["target_matchers"][0]
