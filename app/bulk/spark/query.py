"""Samples and labels as they come, in a streaming query that goes on from its checkpoint.

Samples and labels are one source, told apart by `kind` and put in order by `order`. Each gets one answer, however
often the query is stopped and started: the state of a micro-batch that was not finished is that of the one before.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from app.bulk.backfill import EVENTS
from app.bulk.job import Job
from app.bulk.rows import BadRow, Rows
from app.bulk.spark.kept import KeptState
from app.bulk.stream import StreamRun
from app.streams.errors import InvalidStreamId
from app.streams.ids import checked_stream_id
from core import Records

SOURCE: Final = """stream STRING, order BIGINT, kind STRING, id STRING, time DOUBLE, x ARRAY<DOUBLE>,
    seq BIGINT, anomaly BOOLEAN"""
"""A sample has x, and may have an id and a time; a label has an id or a seq, and anomaly, null to withdraw one."""
ANSWER: Final = """stream STRING, order BIGINT, kind STRING, id STRING, seq BIGINT, score DOUBLE, threshold DOUBLE,
    severity DOUBLE, is_anomaly BOOLEAN, ready BOOLEAN, incident BIGINT, event STRING, outcome STRING, refused STRING"""
"""A sample gets its score, a label its outcome; refused says why a row was not taken."""
NAMES: Final = [part.split()[0] for part in ANSWER.replace("\n", " ").split(",")]

Answers = list[dict[str, Any]]


def answers_to(source: DataFrame, job: Job) -> DataFrame:
    """Answer the samples and labels of a streaming source, which has the columns of SOURCE."""
    ordered = source.withColumn("order", sql.coalesce("order", sql.lit(-1)))  # so that none is a fraction in pandas
    return ordered.groupBy("stream").transformWithStateInPandas(Streams(job), ANSWER, "Append", "None")


class Streams(StatefulProcessor):  # type: ignore[misc] # Spark's class has no types here
    """The streams of a query, each with a state of its own."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Begin on an executor."""
        self._kept = KeptState(handle)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802 (Spark's name)
        """Take the rows of one stream in a micro-batch."""
        frame = pd.concat(list(rows)).sort_values("order", kind="stable")
        answers = self._take(key[0], frame, time.time())
        yield pd.DataFrame([{"stream": key[0], **answer} for answer in answers], columns=NAMES, dtype=object)

    def _take(self, stream: Any, frame: pd.DataFrame, at: float) -> Answers:
        try:
            checked_stream_id(str(stream))
        except InvalidStreamId as error:
            return [refusal(row, f"stream must be {error.limit}") for row in frame.itertuples()]
        run = StreamRun(self._job, self._kept, self._kept.load())
        unordered, frame = frame[frame["order"] < 0], frame[frame["order"] >= 0]
        answers = [refusal(row, "order must be a whole number, at least 0") for row in unordered.itertuples()]
        for part in runs_of(frame, self._job.batch_size):
            answers += observed(run, part, at) if part["kind"].iloc[0] == "sample" else labelled(run, part, at)
        self._kept.save(run.state)
        return answers

    def close(self) -> None:
        """End."""


def runs_of(frame: pd.DataFrame, size: int) -> Iterator[pd.DataFrame]:
    """Cut rows where samples and labels take turns, and after so many."""
    if frame.empty:
        return
    kinds = frame["kind"].to_numpy()
    cuts = [0, *(np.flatnonzero(kinds[1:] != kinds[:-1]) + 1).tolist(), len(frame)]
    for first, end in pairwise(cuts):
        for start in range(first, end, size):
            yield frame.iloc[start : min(start + size, end)]


def observed(run: StreamRun, frame: pd.DataFrame, at: float) -> Answers:
    """Observe samples; if one cannot be taken, all others are."""
    m = run.state.detector.config.n_features
    fits = [x is not None and len(x) == m for x in frame["x"]]
    refused = [refusal(row, f"x must be {m} numbers or nulls") for row in frame[[not fit for fit in fits]].itertuples()]
    rows = rows_of(frame[fits], m)
    try:
        return refused + answered(frame[fits], *run.observe(rows, at)) if len(rows) else refused
    except BadRow:
        return refused + one_by_one(run, frame[fits], rows, at)


def one_by_one(run: StreamRun, frame: pd.DataFrame, rows: Rows, at: float) -> Answers:
    """Observe each sample by itself."""
    answers: Answers = []
    for i in range(len(rows)):
        one = frame.iloc[i : i + 1]
        try:
            answers += answered(one, *run.observe(rows[i : i + 1], at))
        except BadRow as error:
            answers.append(refusal(next(one.itertuples()), error.said))
    return answers


def rows_of(frame: pd.DataFrame, m: int) -> Rows:
    """Give samples as they are observed."""
    n = len(frame)
    values = [[np.nan if value is None else value for value in x] for x in frame["x"]]
    times = pd.to_numeric(frame["time"]).to_numpy(np.float64, na_value=np.nan)
    ids = tuple("" if name is None or name != name else str(name) for name in frame["id"])
    return Rows(
        np.array(values, np.float64).reshape(n, m),
        None if np.isnan(times).all() else times,
        ids if any(ids) else (),
        np.zeros(n, np.int8),
        np.full(n, np.nan),
        np.column_stack([np.zeros(n, np.int64), frame["order"].to_numpy(np.int64)]),
    )


def answered(frame: pd.DataFrame, records: Records, places: Sequence[int | None]) -> Answers:
    """Give the answers to samples; one whose id came before has its answer already."""
    new = [row for row, place in zip(frame.itertuples(), places, strict=True) if place is not None]
    return [
        {
            "order": row.order,
            "kind": "sample",
            "id": row.id,
            "seq": int(record["seq"]),
            **{name: plain(record[name].item()) for name in ("score", "threshold", "severity", "is_anomaly", "ready")},
            "incident": int(record["incident"]) or None,
            "event": EVENTS[record["event"]],
        }
        for row, record in zip(new, records.rows, strict=True)
    ]


def labelled(run: StreamRun, frame: pd.DataFrame, at: float) -> Answers:
    """Tell labels, each by itself: a later one of the same sample revises the earlier."""
    answers: Answers = []
    for row in frame.itertuples():
        if row.kind != "label":
            answers.append(refusal(row, "kind must be sample or label"))
            continue
        seq = seq_of(run, row)
        anomaly = None if row.anomaly is None or row.anomaly != row.anomaly else bool(row.anomaly)
        outcome = "unknown" if seq is None else run.label({seq: anomaly}, at)[seq]
        answers.append({"order": row.order, "kind": "label", "id": row.id, "seq": seq, "outcome": outcome})
    return answers


def seq_of(run: StreamRun, row: Any) -> int | None:
    """Give the sample of a label, by its id or else by its seq; None if it was not observed."""
    if row.id is not None and row.id == row.id:
        return run.find(str(row.id))
    seq = None if row.seq is None or row.seq != row.seq else int(row.seq)
    return seq if seq is not None and 0 < seq < run.state.detector.next_seq else None


def refusal(row: Any, said: str) -> dict[str, Any]:
    """Answer a row that is not taken."""
    return {"order": row.order, "kind": row.kind, "id": row.id, "refused": said}


def plain(value: Any) -> Any:
    """Give a number, None for NaN."""
    return None if value != value else value
