"""`itan backfill` on several processes, and the import of what it writes."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from app.bulk.backfill import Backfill
from app.bulk.rows import Rows
from app.cli import app
from itan_client import Client
from tests.bulk.samples import NAMES, job_of, rows_of
from tests.integration.process import ServiceProcess

pytestmark = [pytest.mark.servers, pytest.mark.slow]
NOW = 1_750_000_000.0
STREAMS = {f"web:{seed}": rows_of(seed, 150 + 100 * seed, now=NOW) for seed in range(3)}
ROLES = ("--stream-column", "host", "--timestamp-column", "t", "--label-column", "odd", "--label-time-column", "told")
SETTINGS = ("--id-column", "key", "--at", str(NOW), "--batch-size", "64", "--label-every", "20")


def table_of(stream: str, rows: Rows) -> pa.Table:
    columns = {name: rows.X[:, i] for i, name in enumerate(NAMES)}
    label = [None if label == 0 else label > 0 for label in rows.label.tolist()]
    more = {"host": [stream] * len(rows), "t": rows.times, "key": rows.ids, "odd": label, "told": rows.known}
    return pa.table(columns | more)


def itan(*words: object, code: int = 0) -> Result:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the rows of all streams in turn: one file, then another."""
    folder, rng = tmp_path_factory.mktemp("given"), np.random.default_rng(0)
    tables = [table_of(stream, rows) for stream, rows in STREAMS.items()]
    cuts = [len(table) // 2 for table in tables]
    for name, parts in (
        ("a.parquet", [table[:cut] for table, cut in zip(tables, cuts, strict=True)]),
        ("b.parquet", [table[cut:] for table, cut in zip(tables, cuts, strict=True)]),
    ):
        together = pa.concat_tables(parts)
        keys = np.concatenate([np.sort(rng.random(len(part))) for part in parts])
        pq.write_table(together.take(pa.array(np.argsort(keys))), folder / name)
    return folder


@pytest.fixture(scope="module")
def out(given: Path) -> Path:
    out = given.parent / "out"
    said = itan("backfill", given, "--out", out, *ROLES, *SETTINGS, "--workers", 2, "--json").stdout
    totals = json.loads(said)
    assert totals["streams"], totals["samples"] == (3, sum(map(len, STREAMS.values())))
    assert totals["samples_per_cpu_second"] > 1
    return out


def test_each_stream_is_as_if_computed_alone(out):
    images = {row["stream"]: row for row in pq.read_table(out / "images").to_pylist()}
    scores, incidents = pq.read_table(out / "scores"), pq.read_table(out / "incidents")
    assert images.keys() == STREAMS.keys()
    for stream, rows in STREAMS.items():
        run = Backfill(job_of(delay_samples=100, at=NOW), stream)
        alone = list(run.scores([rows]))
        assert {name: column[0] for name, column in run.image().items()} == images[stream]
        mine = scores.filter(pa.compute.equal(scores["stream"], stream)).to_pydict()
        assert mine["score"] == [x if x == x else None for part in alone for x in part["score"].tolist()]
        assert mine["id"] == list(rows.ids)
        of_it = incidents.filter(pa.compute.equal(incidents["stream"], stream))
        assert of_it["id"].to_pylist() == run.incidents()["id"]
    assert json.loads((out / "job.json").read_text())["job"]["at"] == NOW


def test_a_folder_is_imported_and_an_import_goes_on_where_it_stopped(out, tmp_path):
    with ServiceProcess("memory://", tmp_path, max_streams=3) as running, Client(running.url) as client:
        client.observe("web:1", [[0.0, 0.0, 0.0]])
        where = ("--url", running.url)
        done = itan("streams", "import", out, *where, code=1)
        assert "2 streams imported" in done.stdout
        assert "web:1 was refused" in done.stderr
        client.delete("web:1")
        done = itan("streams", "import", out, *where)
        assert "1 stream imported, 2 were imported before" in done.stdout
        assert [client.get(stream).next_seq for stream in STREAMS] == [len(rows) + 1 for rows in STREAMS.values()]
        assert client.feedback("web:2", [{"id": "row-5", "anomaly": True}]).outcome != ["unknown"]


BAD = {
    "an id with other values": (lambda x, t: (x, [NOW - 60] * 3, ["a", "b", "a"]), "row 3: the id 'a' came with other"),
    "a time to come": (lambda x, t: (x, [NOW - 60, NOW, NOW + 1e6], ["a", "b", "c"]), "row 3: timestamps[2]"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_row_that_no_service_would_take_is_named_and_nothing_is_left(tmp_path, bad):
    make, said = BAD[bad]
    values, times, ids = make([1.0, 2.0, 3.0], None)
    pq.write_table(pa.table({"v": values, "t": times, "key": ids}), tmp_path / "s.parquet")
    given = ("--timestamp-column", "t", "--id-column", "key", "--at", NOW, "--workers", 1)
    done = itan("backfill", tmp_path / "s.parquet", "--out", tmp_path / "out", *given, code=2)
    assert f"s.parquet: {said}" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["s.parquet"]


MISUSES = {
    "two streams": (("--stream", "s", "--stream-column", "v"), "exclude each other"),
    "a delay without times": (("--label-column", "v", "--label-delay", "2h"), "--timestamp-column"),
    "no delay": (("--label-delay", "late"), "--label-delay"),
    "told when": (("--label-time-column", "v"), "--label-column"),
    "forgets by time": (("--config", '{"half_life_seconds": 60}'), "--timestamp-column"),
    "features of nobody": (("--config", '{"features": [{"name": "w"}]}'), "the config's feature w is no column"),
    "no config": (("--config", '{"warmup": -1}'), "warmup"),
    "context of nobody": (("--context", "w"), "w cannot be context"),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse_is_refused_at_once(tmp_path, misuse):
    pq.write_table(pa.table({"v": [1.0, 2.5], "u": [0.5, 0.25]}), tmp_path / "s.parquet")
    words, said = MISUSES[misuse]
    done = itan("backfill", tmp_path / "s.parquet", "--out", tmp_path / "out", *words, code=2)
    assert said in done.stderr
    assert not (tmp_path / "out").exists()


def test_nothing_is_replaced(tmp_path):
    pq.write_table(pa.table({"v": [1.0, 2.5]}), tmp_path / "s.parquet")
    assert "never replaces" in itan("backfill", tmp_path / "s.parquet", "--out", tmp_path, code=2).stderr
