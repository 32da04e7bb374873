"""CPU of a request: /observe on each store beside a bare FastAPI echo, interleaved in one run."""

import json
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from bench.servers import NO_REDIS, Client, cpu_seconds, redis_program, redis_server, server
from bench.speed import clusters
from bench.tables import Cell, Column, Table, versions
from core import Detector, DetectorConfig
from core.arrays import FloatArray

FEATURES: Final = 8
TRAINING: Final = 3000
REQUESTS: Final = 500
TURNS: Final = 7
SEED: Final = 0
ECHO: Final = "bare FastAPI echo"
REDIS: Final = "/observe, redis"
CORE: Final = "Detector.observe alone, in-process"


def measure(*, turns: int = TURNS, training: int = TRAINING, requests: int = REQUESTS) -> Table:
    """Median over turns; in each turn every server gets the same requests, one after another."""
    taken: dict[str, list[float]] = {}
    of_redis: dict[str, list[float]] = {}
    with ExitStack() as stack:
        clients, redis_pid = _start_all(stack)
        detector = Detector(DetectorConfig(FEATURES))
        _train(detector, [client for name, client in clients.items() if name != ECHO], training)
        for turn in range(turns + 1):  # the first warms up
            X = clusters(SEED + 1 + turn, requests, FEATURES)
            for name, client in clients.items():
                watched = [client.pid, redis_pid] if name == REDIS else [client.pid]
                seconds = _turn(client, [_body(x[None]) for x in X], watched)
                taken.setdefault(name, []).append(seconds[0])
                of_redis.setdefault(name, []).extend(seconds[1:])
            taken.setdefault(CORE, []).append(_observe_singly(detector, X))
    us = _medians(taken, requests)
    rows = [_row(name, us, _medians(of_redis, requests).get(name)) for name in us]
    notes = [*_notes(training, requests), *([] if redis_pid else [NO_REDIS])]
    return Table(f"CPU us of the server per request, median of {turns} turns", COLUMNS, rows, notes)


COLUMNS: Final = (
    Column("server", "server"),
    Column("us", "CPU us", ".0f"),
    Column("share", "of the echo's throughput", ".0%"),
    Column("core", "core's part of it", ".0%"),
    Column("redis_us", "CPU us of the Redis server", ".0f"),
)


def serve_echo() -> None:
    """Serve the echo as `itan serve` does: uvicorn, uvloop, httptools, no access log."""
    import uvicorn
    from fastapi import FastAPI

    app = FastAPI()

    @app.post("/echo")
    async def echo(body: dict[str, Any]) -> dict[str, Any]:
        return body

    listener = socket.create_server(("127.0.0.1", 0))
    print("echo serves", f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(
        app, http="httptools", loop="uvloop", log_level="error", access_log=False, server_header=False
    )
    uvicorn.Server(config).run(sockets=[listener])


def _start_all(stack: ExitStack) -> tuple[dict[str, Client], int]:
    """Start every server, and give the process id of Redis, 0 if there is none."""
    folder = Path(stack.enter_context(TemporaryDirectory()))
    stores = {"/observe, memory": "memory://", "/observe, sqlite": f"sqlite:///{folder / 'itan.db'}"}
    redis_pid, program = 0, redis_program()
    if program:
        redis_pid, stores[REDIS] = stack.enter_context(redis_server(program, folder))
    servers: dict[str, tuple[tuple[str, ...], str]] = {ECHO: (("bench.http",), "/echo")}
    for name, url in stores.items():
        servers[name] = (
            ("app.cli", "serve", "--port", "0", "--log-level", "error", "--store", url),
            "/observe?stream=s",
        )
    return {name: stack.enter_context(server(words, path)) for name, (words, path) in servers.items()}, redis_pid


def _train(detector: Detector, clients: list[Client], n: int) -> None:
    parts = np.array_split(clusters(SEED, n, FEATURES), max(1, n // 500))
    for X in parts:
        detector.observe(X)
    for client in clients:
        client.post(_body(X) for X in parts)


def _body(X: FloatArray) -> bytes:
    return json.dumps({"samples": X.tolist()}, separators=(",", ":")).encode()


def _turn(client: Client, bodies: list[bytes], watched: list[int]) -> list[float]:
    """Seconds of CPU that each of these processes takes while one server gets its requests."""
    before = [cpu_seconds(pid) for pid in watched]
    client.post(bodies)
    return [cpu_seconds(pid) - start for pid, start in zip(watched, before, strict=True)]


def _medians(taken: dict[str, list[float]], requests: int) -> dict[str, float]:
    """Microseconds per request, without the first turn."""
    return {name: 1e6 * float(np.median(seconds[1:])) / requests for name, seconds in taken.items() if seconds}


def _observe_singly(detector: Detector, X: FloatArray) -> float:
    start = time.process_time()
    for k in range(len(X)):
        detector.observe(X[k : k + 1])
    return time.process_time() - start


def _row(name: str, us: dict[str, float], redis_us: float | None) -> dict[str, Cell]:
    row: dict[str, Cell] = {"server": name, "us": us[name], "redis_us": redis_us}
    if name not in (ECHO, CORE):
        row |= {"share": us[ECHO] / us[name], "core": us[CORE] / us[name]}
    return row


def _notes(training: int, requests: int) -> tuple[str, ...]:
    return (
        f"One sample of {FEATURES} features a request, {requests} a turn, one at a time, after {training} samples.",
        "User and system CPU of the server's process, snapshots included; servers take turns with the same bodies.",
        f"{versions('fastapi', 'uvicorn', 'numpy')}.",
    )


if __name__ == "__main__":
    serve_echo()
