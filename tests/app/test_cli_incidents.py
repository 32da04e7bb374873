"""`itan incidents`, `itan rules` and `itan windows` against a real service."""

import json
import re
from collections.abc import Iterator

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from app.cli import app
from itan_client import Client
from tests.app.incidents import ordinary, outage
from tests.integration.process import ServiceProcess

RULE = {"streams": "web-*", "target": "chat", "url": "http://127.0.0.1:9/hook"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a service that knows an incident that is over, and one that is open."""
    folder = tmp_path_factory.mktemp("service")
    with ServiceProcess("memory://", folder, notices_allow_private="true") as running, Client(running.url) as client:
        for stream, after in (("web-1", 40), ("web-2", 0)):
            client.create(stream, {"features": [{"name": "cpu"}, {"name": "disk"}]})
            samples = [*calm(600), *outage(3), *calm(after)]
            client.observe(stream, samples, timestamps=[1.7e9 + 60 * place for place in range(len(samples))])
        yield running.url


def calm(n: int) -> list[list[float]]:
    """Make samples of which none is odd."""
    return np.clip(ordinary(n), -1.5, 1.5).tolist()


def itan(url: str, *words: str, code: int = 0, given: str | None = None) -> Result:
    done = CliRunner().invoke(app, list(words), input=given, env={"ITAN_URL": url})
    assert done.exit_code == code, done.output
    return done


def listed(url: str, *words: str) -> list[tuple[str, str]]:
    """List the stream and the state of incidents."""
    return [
        (one["stream"], one["state"]) for one in json.loads(itan(url, "incidents", "list", "--json", *words).stdout)
    ]


def test_incidents_are_listed_for_people(url: str) -> None:
    head, first, second = itan(url, "incidents", "list").stdout.splitlines()
    assert head.split() == ["STATE", "BEGIN", "END", "SEVERITY", "FEATURES", "ID"]
    assert first.startswith("open    2023-11-15 08:13:20  ")
    assert second.startswith("closed  2023-11-15 08:13:20  2023-11-15 08:15:20  ")
    assert "  web-2~601~" in first
    assert "disk " in second
    assert second.index("web-1~601~") == head.index("ID")


def test_a_sample_is_explained_in_words(url: str) -> None:
    head, how_rare, *reasons, nats, _ = itan(url, "explain", "--stream", "web-1", "--seq", "602").stdout.splitlines()
    assert head == "Sample 602 of web-1, 2023-11-15 08:14:20 UTC"
    assert how_rare.startswith("Flagged. Severity ")
    assert how_rare.endswith("the larger, the graver. Part of the incident that began with sample 601.")
    values = {"cpu": 8, "disk": 8}
    for reason in reasons:
        name, value, share = re.fullmatch(r"  (\w+) was ([\d.]+), expected about [-\d.]+ +█+ +(\d+)%", reason).groups()
        assert float(value) == pytest.approx(values.pop(name), abs=1.5)
        assert 10 < int(share) < 90
    assert not values
    assert re.fullmatch(r"Score [\d.]+ nats, threshold [\d.]+\.", nats)
    warming_up = itan(url, "explain", "--stream", "web-1", "--seq", "3").stdout
    assert "No severity yet: the stream was warming up." in warming_up
    assert json.loads(itan(url, "explain", "--stream", "web-1", "--seq", "602", "--json").stdout)["seq"] == 602
    assert "unknown_sample" in itan(url, "explain", "--stream", "web-1", "--seq", "999", code=1).output


def test_incidents_are_chosen_and_what_is_left_out_is_said(url: str) -> None:
    assert listed(url) == [("web-2", "open"), ("web-1", "closed")]
    assert listed(url, "--stream", "web-1") == [("web-1", "closed")]
    assert listed(url, "--prefix", "db-") == []
    assert listed(url, "--from", "2023-11-15T08:16:00Z") == [("web-2", "open")]
    assert listed(url, "--to", "1700035900") == []
    assert listed(url, "--state", "open") == [("web-2", "open")]
    cut = itan(url, "incidents", "list", "--limit", "1")
    assert "more than the newest 1" in cut.stderr
    assert itan(url, "incidents", "list", "--limit", "2").stderr == ""
    assert "state" in itan(url, "incidents", "list", "--state", "loud", code=1).stderr


def test_an_incident_is_shown(url: str) -> None:
    newest = json.loads(itan(url, "incidents", "list", "--json", "--limit", "1").stdout)[0]
    assert json.loads(itan(url, "incidents", "show", newest["id"]).stdout) == newest
    assert "[404 unknown_incident]" in itan(url, "incidents", "show", "web-1~1~1", code=1).stderr


def test_an_incident_is_labelled_and_its_label_withdrawn(url: str) -> None:
    def labelled(*words: str) -> tuple[list[int], dict[str, int]]:
        answer = json.loads(itan(url, "incidents", "label", newest["id"], *words).stdout)
        return answer["found"], {name: count for name, count in answer["outcomes"].items() if count}

    newest = json.loads(itan(url, "incidents", "list", "--json", "--stream", "web-1").stdout)[0]
    assert labelled("--anomaly", "--dry-run") == ([3], {"applied": 3})
    assert labelled("--anomaly") == ([3], {"applied": 3})
    assert listed(url, "--stream", "web-1") == [("web-1", "confirmed")]
    found, outcomes = labelled("--withdraw", "--all")
    assert (outcomes["withdrawn"], found[0] > 3) == (3, True)
    assert listed(url, "--stream", "web-1") == [("web-1", "closed")]
    assert "--anomaly, --normal" in itan(url, "incidents", "label", newest["id"], code=2).stderr
    assert "[404 unknown_incident]" in itan(url, "incidents", "label", "web-1~1~1", "--normal", code=1).stderr


@pytest.mark.parametrize(("begin", "end"), [("1700036000", "1700036120"), ("2023-11-15T08:13:20Z", "1700036120.5")])
def test_the_samples_of_a_time_are_labelled(url: str, begin: str, end: str) -> None:
    words = ("label", "-s", "web-1", "--from", begin, "--to", end, "--anomaly")
    assert json.loads(itan(url, *words).stdout)["seq"] == [601, 602, 603]
    json.loads(itan(url, *words[:-1], "--withdraw").stdout)
    shorter = ("label", "-s", "web-1", "--from", "1700035940", "--to", begin)
    assert json.loads(itan(url, *shorter, "--normal", "--all", "--dry-run").stdout)["seq"] == [600, 601]
    assert json.loads(itan(url, *shorter, "--normal", "--dry-run").stdout)["seq"] == [601]


@pytest.mark.parametrize(
    "words",
    [
        ["--from", "1700036000"],
        ["--from", "1700036000", "--to", "1700036120", "--seq", "3"],
        ["--seq", "3", "--all"],
    ],
)
def test_a_time_that_has_no_end_or_more_than_a_time_is_refused(words: list[str]) -> None:
    assert itan("http://127.0.0.1:9", "label", "-s", "s", "--anomaly", *words, code=2).stderr.startswith("itan: ")


def test_rules_are_put_shown_listed_tested_and_deleted(url: str) -> None:
    kept = json.loads(itan(url, "rules", "put", "on-call", "-", given=json.dumps(RULE)).stdout)
    assert (kept["rule"], kept["streams"], kept["has_secret"]) == ("on-call", "web-*", False)
    assert json.loads(itan(url, "rules", "show", "on-call").stdout) == kept
    assert itan(url, "rules", "list").stdout == "on-call\n"
    tested = json.loads(itan(url, "rules", "test", "on-call", code=1).stdout)
    assert (tested["delivered"], tested["reason"]) == (False, "ConnectError")
    itan(url, "rules", "delete", "on-call")
    assert itan(url, "rules", "list").stdout == ""
    assert "[404 unknown_rule]" in itan(url, "rules", "show", "on-call", code=1).stderr


def test_windows_are_put_shown_listed_and_deleted(url: str) -> None:
    times = ("--from", "2026-12-01T22:00:00Z", "--to", "1796168400")
    kept = json.loads(itan(url, "windows", "put", "move", "--streams", "web-*", *times, "--reason", "new disks").stdout)
    expected = {"window": "move", "streams": "web-*", "from": 1796162400.0, "to": 1796168400.0, "reason": "new disks"}
    assert kept == expected
    assert json.loads(itan(url, "windows", "show", "move").stdout) == kept
    assert itan(url, "windows", "list").stdout == "move\n"
    itan(url, "windows", "delete", "move")
    assert itan(url, "windows", "list").stdout == ""
    assert "[404 unknown_window]" in itan(url, "windows", "show", "move", code=1).stderr
    assert "to" in itan(url, "windows", "put", "move", "--streams", "*", "--from", "2", "--to", "1", code=1).stderr


@pytest.mark.parametrize(
    ("variables", "address"),
    [
        ({}, "http://127.0.0.1:8000"),
        ({"ITAN_PORT": "9"}, "http://127.0.0.1:9"),
        ({"ITAN_PORT": "9", "ITAN_HOST": "0.0.0.0"}, "http://127.0.0.1:9"),
        ({"ITAN_PORT": "9", "ITAN_HOST": "::1"}, "http://[::1]:9"),
        ({"ITAN_PORT": "9", "ITAN_HOST": "localhost"}, "http://localhost:9"),
        ({"ITAN_PORT": "0"}, "http://127.0.0.1:8000"),
        ({"ITAN_PORT": "9", "ITAN_URL": "http://127.0.0.2:7"}, "http://127.0.0.2:7"),
    ],
)
def test_commands_find_the_service_by_its_settings(
    variables: dict[str, str], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(Client, "streams", lambda client, *_, **__: asked.append(client._connection.url) or [])
    done = CliRunner().invoke(app, ["streams", "list"], env=variables)
    assert (done.exit_code, asked) == (0, [address])


@pytest.mark.parametrize("port", ["x", "65536", "-1"])
def test_a_port_that_is_none_is_said_on_one_line(port: str) -> None:
    done = CliRunner().invoke(app, ["streams", "list"], env={"ITAN_PORT": port})
    assert (done.exit_code, done.stderr) == (2, f"itan: ITAN_PORT: {port!r} is no port\n")
