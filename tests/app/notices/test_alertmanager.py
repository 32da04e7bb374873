"""A real Alertmanager: it keeps what is open, lets go of what has ended, and inhibits by its configuration."""

import shutil
from pathlib import Path

import httpx2
import pytest

from tests.app.notices.conftest import Office
from tests.processes import find_free_port, find_program, is_listening, running, wait_until

CONFIG = Path(__file__).parents[3] / "deploy" / "alertmanager" / "alertmanager.yml"


@pytest.fixture
def alertmanager(tmp_path):
    port = find_free_port()
    shutil.copy(CONFIG, tmp_path)
    command = [find_program("prometheus-alertmanager"), f"--config.file={tmp_path}/{CONFIG.name}"]
    command += [
        f"--storage.path={tmp_path}/data",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    with running(command, tmp_path / "said", lambda: is_listening(port)):
        yield f"http://127.0.0.1:{port}"


def active(url: str) -> list[tuple[str, str]]:
    found = httpx2.get(f"{url}/api/v2/alerts").raise_for_status().json()
    return sorted((one["labels"]["stream"], one["labels"]["severity"]) for one in found)


async def test_a_real_alertmanager_is_told_of_incidents(alertmanager, office, streams, store, clock):
    for name, least in (("warning", 2), ("critical", 4)):
        await office.put(
            name, url=alertmanager, target="alertmanager", secret="", label=name, least_severity=least, source="test"
        )
    await streams.open("web-1", 1)
    await streams.open("web-2", 1, peak_severity=5.0)
    await office.round()
    assert active(alertmanager) == [("web-1", "warning"), ("web-2", "critical"), ("web-2", "warning")]
    (found,) = httpx2.get(f"{alertmanager}/api/v2/alerts?filter=stream=web-1").json()
    assert found["labels"] == {"alertname": "ItanIncident", "stream": "web-1", "source": "test", "severity": "warning"}
    assert found["annotations"]["url"] == "https://itan.example.org/#/streams/web-1?incident=1"
    assert found["receivers"] == [{"name": "streams"}]
    first_end = found["endsAt"]

    clock.ahead += 61
    again = Office(store, clock)  # after a restart
    for name, rule in (await again.rules.all()).items():
        await again.lane(name, rule).look_again()
    (found,) = httpx2.get(f"{alertmanager}/api/v2/alerts?filter=stream=web-1").json()
    assert found["endsAt"] > first_end

    clock.ahead = 0
    await streams.close("web-2", 1, peak_severity=5.0)
    await office.round()
    assert active(alertmanager) == [("web-1", "warning")]
    await again.close()


def test_a_severe_alert_inhibits_the_mild_one_of_its_stream(alertmanager):
    def inhibited() -> list[str]:
        found = httpx2.get(f"{alertmanager}/api/v2/alerts").json()
        return [one["labels"]["severity"] for one in found if one["status"]["inhibitedBy"]]

    labels = {"alertname": "ItanIncident", "stream": "s", "source": "itan"}
    alerts = [{"labels": labels | {"severity": severity}} for severity in ("warning", "critical")]
    httpx2.post(f"{alertmanager}/api/v2/alerts", json=alerts).raise_for_status()
    wait_until(lambda: inhibited() == ["warning"], 30)
