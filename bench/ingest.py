"""CPU of records of many streams: one request over a thousand streams beside one of as many samples of one stream."""

import json
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Final

import numpy as np

import itan_client
from app.streams.changes.ingest import STREAMS_TOGETHER
from bench.servers import NO_REDIS, Client, cpu_seconds, redis_program, redis_server, serving
from bench.speed import clusters
from bench.tables import Cell, Column, Table, versions
from core import Detector, DetectorConfig, observe_together
from core.arrays import FloatArray

FEATURES: Final = 4
STREAMS: Final = 1000
TRAINING: Final = 3000
TURNS: Final = 5
SEED: Final = 0
STORES: Final = ("sqlite", "redis")
ONE: Final = "/observe, one stream"
MANY: Final = "/ingest, a stream each"
TOGETHER: Final = "/ingest, one stream"
CORE: Final = "Detector.observe alone, a stream each"
STACKED: Final = "observe_together alone, a stream each"
COLUMNS: Final = (
    Column("store", "store"),
    Column("what", "one request"),
    Column("ms", "CPU ms", ".0f"),
    Column("ratio", "of /observe", ".1f"),
)


def measure(*, turns: int = TURNS, training: int = TRAINING, streams: int = STREAMS) -> Table:
    """Median over turns; in each turn the requests to one store take turns with the same samples."""
    rows: list[dict[str, Cell]] = []
    for store in STORES if redis_program() else STORES[:1]:
        with ExitStack() as stack:
            client = stack.enter_context(serving(_url(store, stack)))
            taken = _taken(client, turns, training, streams)
        ms = {name: 1e3 * float(np.median(seconds[1:])) for name, seconds in taken.items()}
        rows += [{"store": store, "what": name, "ms": ms[name], "ratio": ms[name] / ms[ONE]} for name in ms]
    notes = [*_notes(training), *([] if redis_program() else [NO_REDIS])]
    return Table(f"CPU of {streams} samples, median of {turns} turns", COLUMNS, rows, notes)


def _url(store: str, stack: ExitStack) -> str:
    """Begin an empty store; give its URL."""
    folder = Path(stack.enter_context(TemporaryDirectory()))
    if store == "sqlite":
        return f"sqlite:///{folder / 'itan.db'}"
    return stack.enter_context(redis_server(redis_program(), folder))[1]


def _taken(client: Client, turns: int, training: int, streams: int) -> dict[str, list[float]]:
    """Give the seconds of CPU of each request, by turn."""
    taken: dict[str, list[float]] = {ONE: [], TOGETHER: [], MANY: [], CORE: [], STACKED: []}
    detector = _train(client, training, streams)
    copies, stacked = ([Detector.from_bytes(detector.to_bytes()) for _ in range(streams)] for _ in range(2))
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
        taken[STACKED].append(_observe_stacked(stacked, X))
    return taken


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


def _observe_stacked(detectors: list[Detector], X: FloatArray) -> float:
    began = process_time()
    for start in range(0, len(X), STREAMS_TOGETHER):
        part = slice(start, start + STREAMS_TOGETHER)
        samples = [x[None] for x in X[part]]
        told = observe_together(detectors[part], samples, np.full(len(samples), np.nan))
        for detector, sample, records in zip(detectors[part], samples, told, strict=True):
            if records is None:
                detector.observe(sample)
    return process_time() - began


def _notes(training: int) -> tuple[str, ...]:
    return (
        f"Samples of {FEATURES} features, every stream after {training} samples; user and system CPU of the server.",
        f"{versions('fastapi', 'uvicorn', 'numpy')}.",
    )
