"""What people find when they query the archive."""

import re
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq

from app.streams.log.archive.tables import distinct
from tests.app.archived import IDS, SAMPLES, X, feed, move, settings
from tests.app.harness import Service

PAGE = (Path(__file__).parents[5] / "docs/archive.md").read_text()
QUERIES = PAGE.split("```sql\n")[1].split("```")[0]
COLUMNS = PAGE.split("| column of `samples` |")[1].split("\n\n")[0]


async def test_the_query_of_the_page_shows_every_sample_with_its_newest_label(tmp_path):
    async with Service(**settings(tmp_path, log_samples=16)) as service:
        await service.accepted("PUT", "/streams/s", json={"features": [{"name": "cpu"}, {"name": "Score"}]})
        await feed(service, 0, 60)
        await service.feedback({"seq": 3, "anomaly": True}, {"seq": 5, "anomaly": True})
        await move(service)
        service.clock.advance(1.0)
        await service.feedback({"seq": 3, "anomaly": None}, {"seq": 4, "anomaly": False})
        await feed(service, 60)
        await move(service)
        given = await service.accepted("GET", f"/streams/s/history?from=1&to={SAMPLES}&points=1000&values=true")
    with duckdb.connect() as database:
        database.execute(QUERIES.replace("/srv/itan-archive", str(tmp_path))).fetchall()
        found = database.sql("SELECT * FROM samples ORDER BY seq").fetchnumpy()
    n = len(found["seq"])
    assert n > 90
    assert found["seq"].tolist() == given["seq"][:n]
    assert set(found["stream"]) == {"s"}
    assert found["id"].tolist() == IDS[:n]
    np.testing.assert_array_equal(found["score"].filled(np.nan), np.array(given["score"][:n], float))
    np.testing.assert_array_equal(np.column_stack([found["cpu"], found["Score_2"]]), X[:n])
    labels = {seq: label for seq, label in zip(found["seq"].tolist(), found["label"].tolist(), strict=True) if label}
    assert labels == {4: "normal", 5: "anomalous"}
    named = {name for line in COLUMNS.splitlines()[1:] for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert named == {*found} - {"cpu", "Score_2"}


async def test_a_query_finds_labels_even_if_there_are_none(tmp_path):
    async with Service(**settings(tmp_path)) as service:
        await feed(service)
        await move(service)
    with duckdb.connect() as database:
        database.execute(QUERIES.replace("/srv/itan-archive", str(tmp_path))).fetchall()
        assert database.execute("SELECT count(label) FROM samples").fetchall() == [(0,)]
    assert {pq.read_schema(path).names[0] for path in tmp_path.rglob("*.parquet")} == {"seq"}


def test_columns_of_features_are_distinct_in_any_case() -> None:
    taken = {"seq": None, "score": None}
    assert distinct(["Score", "a", "A", "a_2", "stream"], taken) == ["Score_2", "a", "A_2", "a_2_2", "stream_2"]
