"""The app behind real connections, in a thread of its own, on either event loop."""

import asyncio
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from app.main import create_app
from app.metrics import Metrics
from app.protocol import Connections, Limits, Server, configure
from app.settings import Settings
from tests.processes import wait_until

HOST = "Host: localhost"


class Gate:
    """An app that answers each request when it may, and notes which have come."""

    def __init__(self) -> None:
        self.opened, self.paths = threading.Event(), []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self.paths.append(scope["path"])
        while not self.opened.is_set():  # noqa: ASYNC110 another thread sets it
            await asyncio.sleep(0.01)
        if any(name == b"expect" for name, _ in scope["headers"]):
            await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


class Untimed(Server):
    """Leaves it to the test to let time go on."""

    loop: asyncio.AbstractEventLoop | None = None

    async def on_tick(self, counter: int) -> bool:
        self.loop = asyncio.get_running_loop()
        return await super(Server, self).on_tick(counter)


class Serving:
    """One service, whose connections' time stands still until it is moved."""

    def __init__(self, loop: Any, app: ASGIApp | None = None, **settings: Any) -> None:
        self.settings = Settings(store="memory://", **settings)
        self.app = app or create_app(self.settings)
        self.metrics = Metrics("0") if app else self.app.state.service.metrics
        self.connections = Connections(Limits.of(self.settings), self.metrics)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
        self.port = self.listener.getsockname()[1]
        self._server = Untimed(configure(self.app, self.connections, 5, loop), self.connections)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self.listener]})
        self._time = 0.0

    def start(self) -> None:
        self._thread.start()
        wait_until(lambda: self._server.loop is not None)
        self._let_look()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive()

    def advance(self, seconds: float) -> None:
        """Let time go on, by looks of a second or less."""
        end = self._time + seconds
        while self._time < end:
            self._time = min(self._time + 1.0, end)
            self._let_look()

    def _let_look(self) -> None:
        assert self._server.loop is not None
        asyncio.run_coroutine_threadsafe(self._look(), self._server.loop).result(20)

    async def _look(self) -> None:
        await asyncio.sleep(0)  # what has come is read first
        self.connections.look(self._time)

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def exchange(self, *parts: bytes) -> bytes:
        """Send bytes as they are, a read apart, and give all that comes until the service closes."""
        with self.connect() as connection:
            with suppress(OSError):  # it may close before it has all
                for part in parts:
                    connection.sendall(part)
            return read_all(connection)

    def count(self, reason: str) -> float:
        """How many connections were closed for a reason."""
        return self.metrics.connections_closed[reason]._value.get()


@contextmanager
def serving(loop: Any, app: ASGIApp | None = None, **settings: Any) -> Iterator[Serving]:
    running = Serving(loop, app, **settings)
    running.start()
    try:
        yield running
    finally:
        running.stop()


def read_all(connection: socket.socket) -> bytes:
    received = b""
    with suppress(ConnectionError):
        while chunk := connection.recv(65536):
            received += chunk
    return received


def read_one(connection: socket.socket) -> bytes:
    """One answer, where its length is given; of others what comes first."""
    received = b""
    while b"\r\n\r\n" not in received:
        chunk = connection.recv(65536)
        assert chunk, received
        received += chunk
    headers, _, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", headers)
    while length and len(body) < int(length[1]):
        chunk = connection.recv(65536)
        received, body = received + chunk, body + chunk
    return received


def head(start: str, *lines: str) -> bytes:
    return "\r\n".join([f"{start} HTTP/1.1", HOST, *lines, "", ""]).encode("latin-1")


def statuses(received: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", received)]


def codes(received: bytes) -> list[str]:
    return [code.decode() for code in re.findall(rb'"code":"(\w+)"', received)]
