"""`itan replay` through a real service."""

import csv
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from app.cli import app
from app.replay.local import local_service
from app.replay.plot import draw
from app.replay.signals import Signal
from itan_client import Client

ITAN = [sys.executable, "-m", "app.cli"]
RARE = 12
N = 240


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with local_service(f"sqlite:///{tmp_path_factory.mktemp('store')}/itan.db") as url:
        yield url


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two numeric columns with a far sample now and then; some cells are empty, some labels unknown."""
    lot = random.Random(7)
    path = tmp_path_factory.mktemp("table") / "t.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "a", "b", "host", "y"])
        for t in range(N):
            rare = t % RARE == RARE - 1
            a, b = (lot.gauss(9.0 * rare, 1.0) for _ in range(2))
            writer.writerow([t, a, "" if t % 50 == 20 else b, f"h{t}", "" if t % 40 == 0 else int(rare)])
    return path


def replay(*words: str | Path, code: int = 0, stdin: str | None = None) -> Result:
    done = CliRunner().invoke(app, ["replay", *map(str, words)], input=stdin)
    assert done.exit_code == code, done.output
    return done


def report(*words: str | Path, **options: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(replay(*words, "--json", **options).stdout)
    return document


def options(table: Path, stream: str, url: str) -> list[str]:
    words = [str(table), "--stream", stream, "--label-column", "y", "--drop", "row,host", "--url", url]
    return [*words, "--label-delay", "10", "--label-rate", "0.2"]


def test_the_report_agrees_with_the_scores_and_the_service(service: str, table: Path, tmp_path: Path) -> None:
    scores = tmp_path / "scores.csv"
    found = report(*options(table, "agrees", service), "--scores", scores)
    with scores.open() as file:
        rows = list(csv.DictReader(file))
    judged = [row for row in rows if row["score"] and row["label"]]
    assert found["features"] == ["a", "b"]
    assert found["samples"] == len(rows) == N
    assert found["not_scored"] == sum(not row["score"] for row in rows) > 0
    assert found["labelled"] == len(judged)
    assert found["labels_sent"] == found["label_outcomes"]["applied"] > N / 10
    assert found["flags"] == sum(row["flag"] == "1" for row in rows)
    assert found["misses"] == sum(row["flag"] == "0" and row["label"] == "1" for row in judged)
    assert found["false_alarms"] == sum(row["flag"] == "1" and row["label"] == "0" for row in judged)
    assert found["cost"] == found["misses"] + found["false_alarms"] >= found["best_fixed_cost"]
    incidents = Counter(row["incident"] for row in rows if row["incident"])
    assert found["incidents"] == len(incidents) > 0
    assert found["longest_incident"] == max(incidents.values())
    assert all(row["incident"] for row in rows if row["flag"] == "1")
    assert [bool(row["severity"]) for row in rows] == [bool(row["score"]) for row in rows]
    assert found["ranking_auc"] > 0.95
    assert all((float(r["score"]) > float(r["threshold"])) == (r["flag"] == "1") for r in judged)
    with Client(service) as client:
        state = client.get("agrees")
    assert state.n_seen == found["last_seq"] == N
    assert state.threshold == found["threshold"]
    assert [feature["name"] for feature in state.config["features"]] == ["a", "b"]


@pytest.mark.parametrize("batch_size", [1, 7])
def test_batches_change_nothing(service: str, table: Path, tmp_path: Path, batch_size: int) -> None:
    whole, cut = tmp_path / "whole.csv", tmp_path / "cut.csv"
    rate = ["--label-rate", "0.1", "--seed", "3"]
    report(*options(table, f"whole{batch_size}", service), *rate, "--scores", whole)
    report(*options(table, f"cut{batch_size}", service), *rate, "--scores", cut, "--batch-size", str(batch_size))
    assert whole.read_text() == cut.read_text()


def test_a_replay_goes_on_after_a_restart_as_if_unbroken(service: str, table: Path, tmp_path: Path) -> None:
    whole, first, second = (tmp_path / name for name in ("whole.csv", "first.csv", "second.csv"))
    report(*options(table, "unbroken", service), "--scores", whole)
    local = [*options(table, "broken", "unused"), "--local", "--store", f"sqlite:///{tmp_path}/itan.db"]
    report(*local, "--limit", "101", "--no-final-labels", "--scores", first)
    found = report(*local, "--resume", "--scores", second)
    assert found["samples"] == N - 101
    assert whole.read_text() == first.read_text() + second.read_text().partition("\n")[2]


def test_rows_may_come_from_stdin_and_from_the_middle(service: str, table: Path) -> None:
    words = ["-", "--stream", "stdin", "--url", service, "--columns", "b,a", "--from", "100"]
    found = report(*words, "--limit", "50", stdin=table.read_text())
    assert (found["samples"], found["labelled"], found["ranking_auc"]) == (50, 0, None)
    with Client(service) as client:
        assert [feature["name"] for feature in client.get("stdin").config["features"]] == ["b", "a"]


def test_a_stream_is_created_with_a_config_and_its_costs_count(service: str, table: Path) -> None:
    config = json.dumps({"cost_false_negative": 5, "cost_false_positive": 2, "profile": "paper"})
    found = report(*options(table, "costly", service), "--config", config)
    assert found["cost"] == 5 * found["misses"] + 2 * found["false_alarms"]
    done = replay(*options(table, "costly", service), "--config", "{}", code=1)
    assert done.stderr.startswith("itan: ")
    assert " 409 " in done.stderr.replace("[", " ")
    assert len(done.stderr.splitlines()) == 1


def test_ids_go_along_and_make_a_repeat_harmless(service: str, table: Path) -> None:
    words = [*options(table, "ids", service), "--drop", "row", "--id-column", "host"]
    first, second = report(*words), report(*words)
    assert second["last_seq"] == first["last_seq"] == N
    assert second["label_outcomes"] == {"duplicate": first["labels_sent"]}
    assert second["ranking_auc"] == first["ranking_auc"]


def test_people_get_lines(service: str, table: Path) -> None:
    lines = dict(line.split(maxsplit=1) for line in replay(*options(table, "lines", service)).stdout.splitlines())
    anomalous = re.fullmatch(r"\d+, (\d+) of them anomalous", lines["judged"])
    assert anomalous is not None
    assert lines["flagging"] == f"nothing      would have cost {anomalous[1]}"
    assert re.match(r"severe +seq \d+. Severity", lines["most"])
    assert {"ranking", "average", "incidents", "flags", "misses", "cost", "best", "threshold"} <= set(lines)


def test_the_plot_is_a_picture(service: str, table: Path, tmp_path: Path) -> None:
    replay(*options(table, "plot", service), "--plot", tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture(scope="module")
def seasonal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a rate that follows the hour and the load, one row every ten minutes for ten days."""
    lot = random.Random(3)
    path = tmp_path_factory.mktemp("seasonal") / "s.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["when", "rate", "load"])
        for t in range(1440):
            load = lot.gauss(0, 1)
            rate = 5 * math.sin(2 * math.pi * t / 144) + load + lot.gauss(0, 0.3)
            writer.writerow([1_700_000_000 + 600 * t, rate, load])
    return path


def drawn(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> list[Signal]:
    """Replay with --plot, and give the signals that it drew."""
    found: list[Signal] = []

    def draw_and_keep(outcome: Any, signals: list[Signal], title: str, path: Path) -> None:
        found.extend(signals)
        draw(outcome, signals, title, path)

    monkeypatch.setattr("app.replay.outputs.draw", draw_and_keep)
    picture = Path(words[0]).parent / "signals.png"
    replay(*words, "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    picture.unlink()
    return found


def test_a_calendar_is_created_and_its_band_drawn_behind_the_values(
    service: str, seasonal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [seasonal, "--stream", "season", "--url", service, "--timestamp-column", "when", "--columns", "rate"]
    (shown,) = drawn(monkeypatch, *words, "--calendar", "day,7200", "--timezone", "Europe/Berlin")
    with Client(service) as client:
        config = client.get("season").config
    assert config["calendar"] == {"periods": ["day", 7200], "timezone": "Europe/Berlin"}
    assert (shown.feature, shown.by_time) == ("rate", True)
    assert (shown.x[0], shown.x[-1]) == (shown.band_x[0], shown.band_x[-1]) == (1_700_000_000, 1_700_863_400)
    low, high = np.interp(shown.x, shown.band_x, shown.low), np.interp(shown.x, shown.band_x, shown.high)
    assert 0.8 < ((low < shown.values) & (shown.values < high)).mean() < 0.99
    assert (high - low).mean() < 0.6 * np.ptp(shown.values)


def test_context_is_created_and_its_band_stands_at_the_samples(
    service: str, seasonal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [seasonal, "--stream", "loaded", "--url", service, "--drop", "when", "--context", "load"]
    (shown,) = drawn(monkeypatch, *words)
    with Client(service) as client:
        features = client.get("loaded").config["features"]
    assert [(feature["name"], feature["role"]) for feature in features] == [("rate", "value"), ("load", "context")]
    assert (shown.feature, shown.by_time) == ("rate", False)
    assert shown.band_x.tolist() == shown.x.tolist() == list(range(1, 1441))


def test_the_report_tells_context_and_the_column_of_the_times(service: str, seasonal: Path) -> None:
    words = [seasonal, "--stream", "both", "--url", service, "--timestamp-column", "when"]
    words += ["--context", "load", "--calendar", "day"]
    found = report(*words)
    assert (found["context"], found["timestamps"]) == (["load"], "when")
    assert found["calendar"] == {"periods": ["day"], "timezone": "UTC"}
    text = replay(*words).stdout
    assert re.search(r"^context +load, day \(UTC\) by the column when$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--calendar", "day"], "--timestamp-column"),
        (["--calendar", "day", "--timestamp-column", "when", "--config", '{"calendar": null}'], "--calendar needs"),
        (["--context", "load", "--config", '{"n_features": 3}'], "--context needs"),
        (["--drop", "when", "--context", "noise"], "noise cannot be context"),
        (["--drop", "when", "--context", "load,rate"], "nothing but context"),
        (["--calendar", "month", "--timestamp-column", "when"], "calendar.periods[0]"),
    ],
)
def test_a_wrong_context_creates_nothing(service: str, seasonal: Path, words: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["replay", str(seasonal), "--stream", "none", "--url", service, *words])
    assert done.exit_code != 0
    assert said in done.stderr
    with Client(service) as client:
        assert "none" not in client.streams()


@pytest.mark.parametrize(
    ("option", "module", "extra"),
    [("--plot", "matplotlib", "plot"), ("--report", "matplotlib", "evaluate"), ("--report", "jinja2", "evaluate")],
)
def test_a_missing_module_is_said_before_anything_is_sent(
    table: Path, monkeypatch: pytest.MonkeyPatch, option: str, module: str, extra: str
) -> None:
    monkeypatch.setattr("app.replay.outputs.find_spec", lambda name: None if name == module else object())
    done = CliRunner().invoke(app, ["replay", *options(table, "s", "http://127.0.0.1:9"), option, "out"])
    assert done.exit_code == 2
    assert f"uv run --extra {extra} itan replay" in done.stderr


def test_the_report_is_one_page(service: str, table: Path, tmp_path: Path) -> None:
    words = [*options(table, "page", service), "--json", "--report", tmp_path / "page.html"]
    found = report(*words)
    page = (tmp_path / "page.html").read_text()
    assert "comparison" not in found
    assert f"{found['samples']} samples, {found['flags']} of them flagged in {found['incidents']} incidents" in page
    assert "The first 32 samples are the warm-up" in page
    assert "Left out: row, host." in page
    assert f"To flag nothing at all would have cost {found['anomalies']}." in page
    assert f"{found['anomalies']} events in the file: one more or less changes much." in page
    assert re.search(r'<th scope="row">b</th><td class="text">feature</td><td>235</td><td>5</td>', page)
    assert "itan, best threshold in hindsight" in page
    assert "rolling z-score" not in page
    assert not re.findall(r'(?:src|href)="(?!data:)', page)


def test_a_report_without_labels_says_what_is_missing(service: str, seasonal: Path, tmp_path: Path) -> None:
    words = [seasonal, "--stream", "unlabelled", "--url", service, "--timestamp-column", "when", "--calendar", "day"]
    report(*words, "--report", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "There are no labels of both kinds" in page
    assert "How good the decisions were" not in page
    assert page.count("data:image/svg+xml;base64,") == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--drop", "row,host", "--url", "http://127.0.0.1:9"], 1, "no answer from http://127.0.0.1:9"),
        (["--label-column", "truth"], 2, "t.csv: no column truth; there are row, a, b, host, y"),
        ([], 2, "row (called like a time or an index); host (240 cells are no number, first in line 2: 'h0'"),
        (["--label-column", "y", "--label-values", "1"], 2, "--label-values '1' is not two values"),
        (["--label-column", "y", "--label-values", "1.0,1"], 2, "the labels '1.0' and '1' are the same"),
        (["--label-values", "1,0"], 2, "--label-values needs --label-column"),
        (["--timestamp-unit", "ms"], 2, "--timestamp-unit needs --timestamp-column"),
        (["--timezone", "UTC"], 2, "--timezone needs --timestamp-column"),
        (["--timestamp-column", "row", "--timezone", "Mars/Base"], 2, "--timezone 'Mars/Base' is not known"),
        (["--encoding", "klingon"], 2, "--encoding 'klingon' is not known"),
        (["--encoding", "rot13"], 2, "--encoding 'rot13' is not known"),
        (["--header", "a\x1b[2J,b,c,d,e", "--drop", "b"], 2, "a\ufffd[2J ("),
        (["--separator", "both"], 2, "--separator 'both' is not comma, semicolon, tab"),
        (["--columns", "host"], 2, "line 2, column host: 'h0' is not a finite number"),
        (["--store", "memory://"], 2, "--store needs --local"),
        (["--plot", "no-such-folder/p.png"], 2, "there is no folder no-such-folder to write p.png to"),
        (["--scores", "no-such-folder/s.csv"], 2, "there is no folder no-such-folder to write s.csv to"),
        (["--config", "{"], 2, "--config is not JSON"),
        (["--config", "[]"], 2, "--config must be a JSON object"),
        (["--drop", "row,host", "--config", '{"beta": -1}'], 1, "beta"),
        (["--drop", "row,host", "--stream", "no such/id"], 1, "stream"),
    ],
)
def test_what_goes_wrong_is_one_line(service: str, table: Path, words: list[str], code: int, message: str) -> None:
    done = replay(table, "--stream", "wrong", "--url", service, *words, code=code)
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_a_cell_far_down_a_pipe_says_how_much_was_sent(service: str) -> None:
    text = "x\n" + "".join(f"{t * t % 17}\n" for t in range(1150)) + "oops\n"
    done = replay("-", "-s", "pipe", "--url", service, code=2, stdin=text)
    assert "stdin: line 1152, column x: 'oops' is not a finite number (after 1100 samples)" in done.stderr


def test_a_missing_file_is_one_line() -> None:
    done = replay("no-such.csv", "--stream", "s", code=1)
    assert "No such file" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_service_that_does_not_start_is_said(table: Path) -> None:
    done = replay(table, "--stream", "s", "--local", "--store", "ftp://x", code=1)
    assert "ftp" in done.stderr


def test_ctrl_c_ends_with_a_report_of_what_was_sent(service: str) -> None:
    command = [*ITAN, "replay", "-", "-s", "ctrl-c", "--url", service, "--batch-size", "1", "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # more rows than it looks ahead, so that it has begun to send before the interrupt
        process.stdin.write("x\n" + "".join(f"{t % 7}\n" for t in range(1005)))
        process.stdin.flush()
        await_samples(service, "ctrl-c")
        process.send_signal(signal.SIGINT)
        process.stdin.close()
        found = json.loads(process.stdout.read())
    assert process.returncode == 130
    assert found["stopped"]
    assert 0 < found["samples"] < 1005
    with Client(service) as client:
        assert client.get("ctrl-c").n_seen == found["samples"]


def await_samples(service: str, stream: str) -> None:
    with Client(service) as client:
        while stream not in client.streams():
            os.sched_yield()


def test_a_local_service_needs_no_stream(table: Path) -> None:
    assert report(table, "--drop", "row,host,y", "--local", "--limit", "40")["stream"] == "replay"
    assert "--stream names the stream" in replay(table, "--drop", "row,host", code=2).stderr


def test_labels_are_grouped_unless_the_delay_is_to_be_exact(service: str, table: Path) -> None:
    grouped = report(*options(table, "grouped", service))
    exact = report(*options(table, "exact", service), "--exact-delay")
    assert (grouped["label_delay"], grouped["label_every"], exact["label_every"]) == (10, 100, 1)
    assert grouped["labels_sent"] == exact["labels_sent"]
    assert "10 to 109 samples: sent after every 100" in replay(*options(table, "said", service)).stdout


def test_labels_are_read_as_told_and_doubted_if_most_are_anomalies(service: str, table: Path, tmp_path: Path) -> None:
    turned = tmp_path / "turned.csv"
    turned.write_text(
        re.sub(r",(0|1)?$", lambda m: {"1": ",-1", "0": ",1"}.get(m[1], ","), table.read_text(), flags=re.M)
    )
    refused = replay(*options(turned, "turned", service), code=2)
    assert f"{turned}: column y holds the labels '1' (" in refused.stderr
    told = replay(*options(turned, "told", service), "--label-values=-1,1", "--json")
    assert json.loads(told.stdout)["anomalies"] == report(*options(table, "as-ever", service))["anomalies"] > 0
    assert told.stderr == ""
    wrong = replay(*options(turned, "wrong-way", service), "--label-values", "1,-1", "--json")
    assert "itan: warning: 9" in wrong.stderr
    assert json.loads(wrong.stdout)["notes"][0].startswith("warning: 9")


def test_rivals_fare_as_they_do_alone(service: str, table: Path) -> None:
    found = {
        profile: report(
            *options(table, f"{profile}-profile", service), "--compare", "--config", f'{{"profile": "{profile}"}}'
        )
        for profile in ("default", "paper")
    }
    rows = {profile: {row["name"]: row for row in found[profile]["comparison"]["standings"]} for profile in found}
    assert rows["default"]["itan"] | {"name": "itan, default profile"} == rows["paper"]["itan, default profile"]
    assert rows["paper"]["itan"] | {"name": "itan, paper profile"} == rows["default"]["itan, paper profile"]
    assert rows["default"]["rolling z-score"] == rows["paper"]["rolling z-score"]
    assert rows["default"]["itan"]["cost"] > 0
    refused = replay(*options(table, "paper-profile", service), "--compare", code=2)
    assert "--compare needs a stream without samples; paper-profile has 240" in refused.stderr
    assert "--compare judges" in replay(table, "-s", "s", "--compare", code=2).stderr


def test_the_comparison_is_a_table(service: str, table: Path) -> None:
    text = replay(*options(table, "compared", service), "--compare").stdout
    assert re.search(r"^itan, fixed threshold +0\.9\d\d", text, re.MULTILINE)


@pytest.fixture
def timed(tmp_path: Path) -> Path:
    path = tmp_path / "timed.csv"
    path.write_text("time,x\n" + "".join(f"{1700000000 + i},{i % 7}\n" for i in range(60)))
    return path


@pytest.mark.parametrize("words", [[], ["--config"]])
def test_a_column_of_times_is_no_feature_unless_it_is_named(service: str, timed: Path, words: list[str]) -> None:
    stream = f"timed{len(words)}"
    words = [str(timed), "--stream", stream, "--url", service, *words, *(["{}"] if words else [])]
    refused = replay(*words, code=2)
    assert "--timestamp-column" in refused.output
    assert report(*words, "--columns", "time,x")["samples"] == 60
    assert report(*words)["samples"] == 60


def test_a_column_of_times_has_its_role(service: str, timed: Path) -> None:
    assert (
        report(str(timed), "--stream", "timed-right", "--url", service, "--timestamp-column", "time")["samples"] == 60
    )
