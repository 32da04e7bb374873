"""`itan streams`, `templates`, `label` and `density` against a real service that asks for a key."""

import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli import app
from itan_client import Client
from tests.app.incidents import ordinary, outage
from tests.integration.process import ServiceProcess

KEY = "s3cret"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("service")
    # a snapshot is stored when a stream is created, and no other one, however slow the machine is
    with ServiceProcess("memory://", folder, api_keys=KEY, snapshot_replay_seconds=1000) as running:
        yield running.url


@pytest.fixture
def stream(url: str, request: pytest.FixtureRequest) -> str:
    """Make a stream that is ready."""
    name = re.sub(r"\W", "-", request.node.name)
    with Client(url, KEY) as client:
        client.create(name, {"n_features": 2})
        client.observe(name, [[t % 7, t % 5] for t in range(100)], ids=[f"id{t}" for t in range(100)])
    return name


def itan(url: str, *words: str, code: int = 0, key: str = KEY, given: str | None = None) -> Result:
    done = CliRunner().invoke(app, list(words), input=given, env={"ITAN_URL": url, "ITAN_KEY": key})
    assert done.exit_code == code, done.output
    return done


def test_streams_are_listed(url: str, stream: str) -> None:
    assert stream in itan(url, "streams", "list").stdout.split()
    assert itan(url, "streams", "list", "--prefix", stream, "--order", "silent").stdout.split() == [stream]


def test_the_list_says_how_streams_stand(url: str) -> None:
    with Client(url, KEY) as client:
        client.create("stands-cold", {"n_features": 2})
        client.create("stands-hot", {"n_features": 2})
        severity = client.observe("stands-hot", [*ordinary(300), *outage(3)]).severity[-1]
    done = itan(url, "streams", "list", "--details", "--prefix", "stands-")
    head, cold, hot = (re.split("  +", line) for line in done.stdout.splitlines())
    assert head == ["STATE", "SAMPLES", "FLAGGED LATELY", "TO REVIEW", "SEVERITY", "STREAM"]
    assert cold == ["warming up", "0", "0", "0", "-", "stands-cold"]
    assert hot == ["incident", "303", "3", "1", f"{severity:.1f}", "stands-hot"]
    assert "severity of the newest flagged sample" in done.stderr


def test_a_stream_is_shown(url: str, stream: str) -> None:
    shown = json.loads(itan(url, "streams", "show", stream).stdout)
    assert (shown["stream"], shown["n_seen"]) == (stream, 100)


def test_a_stream_is_reset_and_deleted(url: str, stream: str) -> None:
    itan(url, "streams", "reset", stream)
    assert json.loads(itan(url, "streams", "show", stream).stdout)["ready"] is False
    itan(url, "streams", "delete", stream)
    assert stream not in itan(url, "streams", "list").stdout.split()
    assert "[404 " in itan(url, "streams", "show", stream, code=1).stderr


def test_a_stream_is_patched(url: str, stream: str, tmp_path: Path) -> None:
    (tmp_path / "changes.json").write_text('{"expected_anomaly_rate": 0.002}')
    patched = json.loads(itan(url, "streams", "patch", stream, str(tmp_path / "changes.json")).stdout)
    assert (patched["config"]["expected_anomaly_rate"], patched["n_seen"]) == (0.002, 100)
    refused = itan(url, "streams", "patch", stream, "-", given='{"n_features": 3}', code=1)
    assert "[422 " in refused.stderr
    assert json.loads(itan(url, "streams", "show", stream).stdout)["config"] == patched["config"]
    assert itan(url, "streams", "patch", stream, "-", given="[1]", code=2).stderr.startswith("itan: - ")


def test_a_stream_is_cloned_once(url: str, stream: str) -> None:
    itan(url, "streams", "clone", stream, "twin")
    points = ("--points", "[[1, 2], [40, null]]")
    densities = {itan(url, "density", "-s", name, *points).stdout for name in (stream, "twin")}
    assert len(densities) == 1
    assert "[409 stream_exists]" in itan(url, "streams", "clone", stream, "twin", code=1).stderr


def test_templates_are_put_shown_listed_used_and_deleted(url: str) -> None:
    given = {"streams": "plant-*", "config": {"expected_anomaly_rate": 0.003}}
    kept = json.loads(itan(url, "templates", "put", "plants", "-", given=json.dumps(given)).stdout)
    assert kept == given | {"warm_start": None, "template": "plants"}
    assert json.loads(itan(url, "templates", "show", "plants").stdout) == kept
    assert itan(url, "templates", "list").stdout == "plants\n"
    with Client(url, KEY) as client:
        assert client.create("plant-1", {"n_features": 1}).config["expected_anomaly_rate"] == 0.003
    itan(url, "templates", "delete", "plants")
    assert itan(url, "templates", "list").stdout == ""
    assert "[404 unknown_template]" in itan(url, "templates", "show", "plants", code=1).stderr


def test_silent_streams_are_pruned(url: str, stream: str) -> None:
    time.sleep(3.1)  # the others must not be as old before they are looked at, however slow the machine is
    with Client(url, KEY) as client:
        for name in ("other", f"{stream}-new"):
            client.create(name, {"n_features": 2})
    prune = ("streams", "prune", "--prefix", stream)
    assert itan(url, *prune, "--idle", "1h").stdout == ""
    assert itan(url, *prune, "--idle", "3s", "--dry-run").stdout == f"{stream}\n"
    assert itan(url, *prune, "--idle", "3s").stdout == f"{stream}\n"
    left = itan(url, "streams", "list").stdout.split()
    assert stream not in left
    assert {"other", f"{stream}-new"} <= set(left)
    assert "30d" in itan(url, *prune, "--idle", "soon", code=2).stderr


def test_an_export_becomes_the_same_stream_again(url: str, stream: str, tmp_path: Path) -> None:
    file = tmp_path / "stream.itan"
    itan(url, "streams", "export", stream, "-o", str(file))
    before = itan(url, "density", "-s", stream, "--points", "[[1, 2], [40, null]]").stdout
    with Client(url, KEY) as client:
        client.observe(stream, [[50.0, 50.0]] * 50)
    assert itan(url, "density", "-s", stream, "--points", "[[1, 2], [40, null]]").stdout != before
    itan(url, "streams", "import", stream, str(file))
    assert itan(url, "density", "-s", stream, "--points", "[[1, 2], [40, null]]").stdout == before


def test_a_spoilt_file_is_refused_on_one_line(url: str, stream: str, tmp_path: Path) -> None:
    (tmp_path / "spoilt").write_bytes(b"not a snapshot")
    done = itan(url, "streams", "import", stream, str(tmp_path / "spoilt"), code=1)
    assert done.stderr.startswith("itan: ")
    assert len(done.stderr.splitlines()) == 1


def test_streams_are_checked_repaired_and_accepted(url: str, stream: str) -> None:
    assert itan(url, "streams", "check", stream).stdout == f"{stream}: ok (100 samples replayed)\n"
    checked = json.loads(itan(url, "streams", "check", "all", "--json").stdout)
    assert {
        "stream": stream,
        "ok": True,
        "findings": [],
        "replayed_samples": 100,
        "repair": "nothing to repair",
    } in checked
    assert itan(url, "streams", "repair", stream).stdout == f"{stream}: nothing to repair\n"
    itan(url, "streams", "repair", stream, "--lossy", "--yes")
    itan(url, "streams", "accept", stream)
    itan(url, "streams", "accept", "all")
    assert "[404 " in itan(url, "streams", "check", "nobody", code=1).stderr


def test_a_stream_that_is_deleted_during_a_check_of_all_is_left_out(
    url: str, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Client, "streams", lambda _: ["gone", stream])
    assert itan(url, "streams", "check", "all").stdout.startswith(f"{stream}: ok")
    itan(url, "streams", "check", "gone", code=1)


def test_what_is_wrong_is_said_in_words_and_by_the_exit_status(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/itan.db"
    with ServiceProcess(store, tmp_path) as service, Client(service.url) as client:
        client.observe("s", [[t % 7, t % 5] for t in range(100)])
        client.observe("s", [[1.0, 1.0]])
        assert service.stop() == 0
    with closing(sqlite3.connect(tmp_path / "itan.db", isolation_level=None)) as connection:
        connection.execute("UPDATE snapshots SET body = substr(body, 1, length(body) - 50)")
        connection.execute("UPDATE bases SET body = x'00'")
        connection.execute("DELETE FROM log WHERE seq = 101")
        connection.execute("UPDATE streams SET log_entries = 1")
    with ServiceProcess(store, tmp_path) as service:
        said = itan(service.url, "streams", "check", "s", code=1).stdout
        assert said.startswith("s: not ok")
        assert "the snapshot at 101-0 cannot be read" in said
        assert "the older snapshot at 101-0 cannot be read" in said
        assert "repair: loses samples 101 to 101" in said
        assert "[409 repair_loses]" in itan(service.url, "streams", "repair", "s", code=1).stderr
        repaired = itan(service.url, "streams", "repair", "s", "--lossy", "--yes").stdout
        assert repaired == "s: repaired; samples 101 to 101 are lost\n"
        assert "nobody has accepted it" in itan(service.url, "streams", "check", "s", code=1).stdout
        itan(service.url, "streams", "accept", "s")
        itan(service.url, "streams", "check", "all")


@pytest.mark.parametrize("which", [["--seq", "18"], ["--id", "id17"]])
def test_a_sample_is_labelled_by_seq_or_id(url: str, stream: str, which: list[str]) -> None:
    def outcome(*words: str) -> str:
        done = itan(url, "label", "-s", stream, *which, *words)
        answer = json.loads(done.stdout)
        assert done.stderr == "itan: sample 18 was not flagged. No severity yet: the stream was warming up.\n"
        assert answer["seq"] == [18]
        return str(answer["outcome"][0])

    assert outcome("--anomaly", "--dry-run") == "applied"
    assert outcome("--anomaly") == "applied"
    assert outcome("--anomaly") == "duplicate"
    assert outcome("--normal") == "revised"
    assert outcome("--withdraw") == "withdrawn"


@pytest.mark.parametrize(
    "words",
    [
        ["--anomaly"],
        ["--seq", "1", "--id", "a", "--anomaly"],
        ["--seq", "1"],
        ["--seq", "1", "--anomaly", "--normal"],
    ],
)
def test_a_label_that_says_too_little_or_too_much_is_refused(words: list[str]) -> None:
    assert itan("http://127.0.0.1:9", "label", "-s", "s", *words, code=2).stderr.startswith("itan: ")


def test_the_model_is_shown(url: str, stream: str) -> None:
    model = json.loads(itan(url, "density", "-s", stream).stdout)
    assert model["nodes"]


@pytest.mark.parametrize("points", ["[[1, 2]", "7", "[0.3]"])
def test_points_that_are_none_are_refused(points: str) -> None:
    done = itan("http://127.0.0.1:9", "density", "-s", "s", "--points", points, code=2)
    assert "--points" in done.stderr


def test_a_wrong_key_is_one_line_that_does_not_show_it(url: str) -> None:
    done = itan(url, "streams", "list", code=1, key="guess")
    assert "[401 " in done.stderr
    assert "guess" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
