"""CPU of records of many streams: one request over a thousand streams beside one of as many samples of one stream."""

import json
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Final

import numpy as np

import itan_client
from bench.http import Client, cpu_seconds, serving
from bench.speed import clusters
from bench.tables import Cell, Column, Table, versions
from core import Detector, DetectorConfig
from core.arrays import FloatArray

FEATURES: Final = 4
STREAMS: Final = 1000
TRAINING: Final = 3000
TURNS: Final = 5
SEED: Final = 0
ONE: Final = "/observe, one stream"
MANY: Final = "/ingest, a stream each"
TOGETHER: Final = "/ingest, one stream"
CORE: Final = "Detector.observe alone, a stream each"
COLUMNS: Final = (
    Column("what", "one request"),
    Column("ms", "CPU ms", ".0f"),
    Column("ratio", "of /observe", ".1f"),
)


def measure(*, turns: int = TURNS, training: int = TRAINING, streams: int = STREAMS) -> Table:
    """Median over turns; in each turn the requests take turns with the same samples, on SQLite."""
    taken: dict[str, list[float]] = {ONE: [], TOGETHER: [], MANY: [], CORE: []}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        client = stack.enter_context(serving(f"sqlite:///{folder / 'itan.db'}"))
        detector = _train(client, training, streams)
        copies = [Detector.from_bytes(detector.to_bytes()) for _ in range(streams)]
        for turn in range(turns + 1):  # the first warms up
            X = clusters(SEED + 1 + turn, streams, FEATURES)
            requests = {
                ONE: ("/observe?stream=one", _samples(X)),
                TOGETHER: ("/ingest", _records(X, ["one"] * streams)),
                MANY: ("/ingest", _records(X, [f"s{i}" for i in range(streams)])),
            }
            for name, (path, body) in requests.items():
                began = cpu_seconds(client.pid)
                client.at(path).post([body])
                taken[name].append(cpu_seconds(client.pid) - began)
            taken[CORE].append(_observe_each(copies, X))
    ms = {name: 1e3 * float(np.median(seconds[1:])) for name, seconds in taken.items()}
    rows: list[dict[str, Cell]] = [{"what": name, "ms": ms[name], "ratio": ms[name] / ms[ONE]} for name in ms]
    return Table(f"CPU of {streams} samples, median of {turns} turns", COLUMNS, rows, _notes(training))


def _train(client: Client, training: int, streams: int) -> Detector:
    """Train one stream, and copy it to all others."""
    X = clusters(SEED, training, FEATURES)
    detector = Detector(DetectorConfig(FEATURES))
    with itan_client.Client(client.url) as service:
        for part in np.array_split(X, max(1, training // 1000)):
            detector.observe(part)
            service.observe("one", part, ids=None)
        state = service.export("one")
        for i in range(streams):
            service.import_(f"s{i}", state)
    return detector


def _samples(X: FloatArray) -> bytes:
    return json.dumps({"samples": X.tolist()}, separators=(",", ":")).encode()


def _records(X: FloatArray, streams: list[str]) -> bytes:
    records = [{"stream": stream, "sample": x} for stream, x in zip(streams, X.tolist(), strict=True)]
    return json.dumps(records, separators=(",", ":")).encode()


def _observe_each(detectors: list[Detector], X: FloatArray) -> float:
    began = process_time()
    for k, detector in enumerate(detectors):
        detector.observe(X[k : k + 1])
    return process_time() - began


def _notes(training: int) -> tuple[str, ...]:
    return (
        f"Samples of {FEATURES} features, every stream after {training} samples; user and system CPU of the server.",
        f"{versions('fastapi', 'uvicorn', 'numpy')}.",
    )
