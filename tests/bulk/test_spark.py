"""Spark computes what the pool computes; a streaming query goes on from its checkpoint. All in one session."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.bulk.job import Job
from app.bulk.kept import KeptLog
from app.bulk.pool import run
from app.bulk.reading.files import Files
from app.bulk.rows import Rows
from app.bulk.stream import StreamRun
from app.replay.reading.columns import Columns
from app.replay.reading.lines import Form
from app.replay.reading.table import Meaning
from tests.bulk.samples import NAMES, job_of, rows_of

pytest.importorskip("pyspark", reason="Spark is not installed: uv sync --group spark")
if not shutil.which("java"):
    pytest.skip("there is no Java to run Spark", allow_module_level=True)

from pyspark.sql import DataFrame, SparkSession

from app.bulk.spark.batch import Roles, results_of, write
from app.bulk.spark.query import SOURCE, answers_to

pytestmark = [
    pytest.mark.spark,
    pytest.mark.servers,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    # Spark's own, of pandas and of sockets that it leaves to the garbage collector
    pytest.mark.filterwarnings("ignore"),
]
NOW = 1_750_000_000.0
STREAMS = {f"web-{seed}": rows_of(seed, 200 + 100 * seed, now=NOW) for seed in range(2)}
STATES = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "OPENBLAS_NUM_THREADS": "1"}
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder),
        "spark.sql.streaming.stateStore.providerClass": STATES,
        "spark.driver.memory": "512m",
        # the session is short: no time to optimize
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def table_of(stream: str, rows: Rows) -> pa.Table:
    moments = [datetime.fromtimestamp(time, UTC) for time in rows.times]
    label = [None if label == 0 else label > 0 for label in rows.label.tolist()]
    roles = {"host": [stream] * len(rows), "t": moments, "key": rows.ids, "odd": label, "told": rows.known}
    return pa.table({name: rows.X[:, i] for i, name in enumerate(NAMES)} | roles)


def test_spark_computes_what_the_pool_computes(spark, tmp_path):
    table = pa.concat_tables([table_of(*one) for one in STREAMS.items()])
    pq.write_table(table, tmp_path / "in.parquet")
    pq.write_table(table.take(np.random.default_rng(0).permutation(len(table))), tmp_path / "shuffled.parquet")
    job = job_of(at=NOW, delay_samples=100)
    columns = Columns("odd", "t", "key", stream="host", known="told")
    files = Files([tmp_path / "in.parquet"], columns, Meaning(), Form())
    assert files.survey()[0] == NAMES
    run(files, job, NAMES, tmp_path / "pool", workers=1)
    roles = Roles("host", "t", "t", "key", "odd", "told")
    write(results_of(spark.read.parquet(str(tmp_path / "shuffled.parquet")), roles, job), str(tmp_path / "spark"))
    for name in ("scores", "incidents", "images"):
        found = [pq.read_table(tmp_path / kind / name) for kind in ("pool", "spark")]
        one, other = (sorted(rows.to_pylist(), key=lambda row: (row["stream"], row.get("seq", 0))) for rows in found)
        assert one == other, name
        assert found[0].schema.equals(found[1].schema)
    assert len(one) == len(STREAMS)


def events_of(stream: str, rows: Rows, seed: int) -> list[dict[str, Any]]:
    """Samples, and labels of some of them some samples later: by id, or by seq."""
    rng, events = np.random.default_rng(seed), []
    for i in range(len(rows)):
        x = [None if value != value else value for value in rows.X[i].tolist()]
        events.append({"kind": "sample", "id": rows.ids[i], "time": rows.times[i], "x": x})
        if i > 20 and rng.random() < 0.2:
            at = int(rng.integers(max(0, i - 150), i))
            named = {"id": rows.ids[at]} if at % 2 else {"seq": at + 1}
            events.append({"kind": "label", **named, "anomaly": bool(rng.random() < 0.3)})
    return [{"stream": stream, "order": 10 * place, **event} for place, event in enumerate(events)]


def expected(job: Job, events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Take the events one by one."""
    one, said = StreamRun(job, KeptLog()), []
    for event in events:
        if event["kind"] == "label":
            seq = one.find(event["id"]) if "id" in event else event["seq"]
            outcome = "unknown" if seq is None else one.label({seq: event["anomaly"]}, NOW)[seq]
            said.append((event["order"], seq, None, None, outcome))
            continue
        X = np.array([event["x"]], np.float64)
        none = np.zeros(1, np.int8), np.full(1, np.nan), np.zeros((1, 2), np.int64)
        records, _ = one.observe(Rows(X, np.array([event["time"]]), (event["id"],), *none), NOW)
        values = [None if value != value else value for value in (records.score[0], records.threshold[0])]
        said.append((event["order"], int(records.seq[0]), *values, None))
    return said


def take_all(spark: SparkSession, job: Job, folder: Path) -> None:
    """Run the query until it has taken all that there is."""
    source: DataFrame = spark.readStream.schema(SOURCE).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    query = (
        answers_to(source, job)
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def test_a_query_goes_on_from_its_checkpoint(spark, tmp_path):
    job = job_of(batch_size=50, keep_samples=100, config={"expected_anomaly_rate": 0.05})
    events = {stream: events_of(stream, rows[:220], seed) for seed, (stream, rows) in enumerate(STREAMS.items())}
    odd = [
        {"stream": "web-0", "order": 10**6, "kind": "sample", "x": [1.0]},
        {"stream": "web-0", "order": 10**6 + 1, "kind": "sample", "x": [1.0, 2.0, 3.0], "id": "row-5"},
        {"stream": "web-0", "order": 10**6 + 2, "kind": "label", "id": "nobody", "anomaly": True},
        {"stream": "web-0", "order": 10**6 + 3, "kind": "?"},
        {"stream": "..", "order": 0, "kind": "sample", "x": [1.0, 2.0, 3.0]},
        {"stream": "web-0", "kind": "sample", "x": [1.0, 2.0, 3.0]},
    ]
    (tmp_path / "in").mkdir()
    rng = np.random.default_rng(0)
    for number in range(2):
        halves = [slice(number * len(some) // 2, (number + 1) * len(some) // 2) for some in events.values()]
        part = [one for some, half in zip(events.values(), halves, strict=True) for one in some[half]]
        part = [part[i] for i in rng.permutation(len(part))] + odd * number
        lines = map(json.dumps, part)
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(lines) + "\n")
        take_all(spark, job, tmp_path)
    found = pa.concat_tables(pq.read_table(path) for path in (tmp_path / "out").glob("*.parquet"))
    answers = [SimpleNamespace(**row) for row in found.sort_by("order").to_pylist()]
    for stream, given in events.items():
        mine = [a for a in answers if a.stream == stream and a.order is not None and 0 <= a.order < 10**6]
        found = [(a.order, a.seq, a.score, a.threshold, a.outcome) for a in mine]
        assert found == expected(job, given)
        assert sum(a.outcome in ("applied", "revised") for a in mine) > 20
        assert {a.outcome for a in mine} >= {"applied", "expired", "unknown"}
    said = {a.order: (a.refused, a.outcome) for a in answers if a.order >= 10**6 or a.order < 0 or a.stream == ".."}
    assert said[10**6][0] == "x must be 3 numbers or nulls"
    assert said[10**6 + 2] == (None, "unknown")
    assert said[10**6 + 3][0] == "kind must be sample or label"
    assert said[0][0].startswith("stream must be")
    assert said[-1][0].startswith("order must be")
