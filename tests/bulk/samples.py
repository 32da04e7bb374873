"""Samples with storms of outliers and late labels, and how they come to a service."""

from typing import Any

import numpy as np

from app.bulk.backfill import Backfill
from app.bulk.job import Job
from app.bulk.rows import Rows
from app.storage import Entry
from app.streams.log.events import BatchEvent, read_event, read_records, read_timestamps
from app.streams.state.image import Image
from tests.app.harness import NOW, Service

N, M = 700, 3
NAMES = ("a", "b", "c")
BYTES = {"content-type": "application/octet-stream"}


def rows_of(
    seed: int = 0, n: int = N, *, times: bool = True, ids: bool = True, known: bool = True, now: float = NOW
) -> Rows:
    """Give rows of which most outliers, and some others, are labelled an hour or more later."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, M))
    is_odd = (np.arange(n) % 97 < 6) & (np.arange(n) > 100)
    X[is_odd] += 9.0
    X[rng.random((n, M)) < 0.02] = np.nan
    X[np.isnan(X).all(axis=1)] = 0.0
    at = now - 60.0 * np.arange(n, 0, -1)
    label = np.where(rng.random(n) < 0.3, np.where(is_odd, 1, -1), 0).astype(np.int8)
    late = at + rng.uniform(60.0, 7200.0, n)
    return Rows(
        X,
        at if times else None,
        tuple(f"row-{i}" for i in range(n)) if ids else (),
        label,
        late if known else np.full(n, np.nan),
        np.column_stack([np.zeros(n, np.int64), np.arange(n) + 2]),
    )


def job_of(**fields: Any) -> Job:
    """Give a job with small batches."""
    config = {"features": [{"name": name} for name in NAMES], **fields.pop("config", {})}
    return Job(config=config, **{"at": NOW, "batch_size": 64, "label_every": 20, **fields})


def backfilled(job: Job, rows: Rows, cuts: int = 100) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]:
    """Run a job on one stream: the scores row by row, all incidents, and the row with the image."""
    run = Backfill(job, "s")
    parts = [rows[i : i + cuts] for i in range(0, len(rows), cuts)]
    scores = []
    for columns in run.scores(parts):
        scores += [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return scores, run.incidents(), {name: column[0] for name, column in run.image().items()}


def log_of(image: bytes) -> list[Entry]:
    """Give the log in an image."""
    return [entry for entries in Image.from_bytes(image).entries() for entry in entries]


async def post(service: Service, entry: Entry) -> dict[str, Any]:
    """Send a service what an event holds."""
    event = read_event(entry.body)
    records = read_records(event.records)
    if not isinstance(event, BatchEvent):
        given = zip(records.seq.tolist(), event.labels, strict=True)
        return await service.feedback(*({"seq": seq, "anomaly": label} for seq, label in given))
    samples = [[None if np.isnan(value) else value for value in row] for row in records.x.tolist()]
    times = read_timestamps(event)
    more = {"ids": list(entry.ids)} if entry.ids else {}
    more |= {} if times is None else {"timestamps": times.tolist()}
    return await service.observe(samples, **more)
