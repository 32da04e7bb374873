"""Requests at their due times, whether the servers keep up or not, as many clients that know nothing of each other."""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, cast

import httptools

OK: Final = 200
CONNECTIONS: Final = 64
"""Of one generator to one server: requests beyond them wait, and their waiting counts."""
RETRY_SECONDS: Final = 0.1
PATIENCE_SECONDS: Final = 60.0

Address = tuple[str, int]
Request = tuple[str, tuple[int, ...]]
"""A stream, and the places of the servers to ask."""


@dataclass(frozen=True, slots=True)
class Load:
    """Requests one after another, `spacing` seconds apart, from `begin` of the monotonic clock on.

    Of a request's servers the first is asked first, and the next one if that fails. What no server takes is sent again
    and again, as a proxy or a client would.
    """

    requests: Sequence[Request]
    addresses: Sequence[Address]
    bodies: Sequence[bytes]
    begin: float
    spacing: float
    connections: int = CONNECTIONS


@dataclass(slots=True)
class Outcome:
    """What became of requests: when those that were answered had been due, and how many seconds later they were.

    `lateness` says how long after it was due the generator itself turned to a request.
    """

    due: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    lateness: list[float] = field(default_factory=list)
    retries: int = 0
    failed: int = 0
    failures: set[int] = field(default_factory=set)
    cpu_seconds: float = 0.0

    def last_answer(self, due_before: float) -> float:
        """Give when the last of those requests was answered that were due before a moment; -inf without any."""
        answered = (due + waited for due, waited in zip(self.due, self.latencies, strict=True) if due < due_before)
        return max(answered, default=-inf)


class Connection(asyncio.Protocol):
    """Asks one question at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[int] | None = None
        self._parser = httptools.HttpResponseParser(self)

    async def ask(self, request: bytes) -> int:
        """Send a request and give the status of its answer; OSError if the connection ends before."""
        if self._transport is None or self._transport.is_closing():
            raise ConnectionError("closed")
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    @property
    def is_usable(self) -> bool:
        """Tell whether it can be asked again."""
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        """End it."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is of another class

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Take the end of an answer."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(self._parser.get_status_code())

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc if isinstance(exc, OSError) else ConnectionError("closed"))


class Server:
    """The connections to a server; who finds none free waits for its turn."""

    def __init__(self, address: Address, connections: int) -> None:
        self._address, self._room = address, asyncio.Semaphore(connections)
        self._free: deque[Connection] = deque()

    async def ask(self, request: bytes) -> int:
        """Send a request and give the status of its answer, 0 if there is none."""
        async with self._room:
            try:
                connection = await self._take()
                status = await connection.ask(request)
            except OSError:
                return 0
            if connection.is_usable:
                self._free.append(connection)
            return status

    async def _take(self) -> Connection:
        while self._free:
            connection = self._free.pop()
            if connection.is_usable:
                return connection
        _, connection = await asyncio.get_running_loop().create_connection(Connection, *self._address)
        return connection

    def close(self) -> None:
        """End all connections."""
        for connection in self._free:
            connection.close()


class Run:
    """One load under way."""

    def __init__(self, load: Load) -> None:
        self._load, self._outcome = load, Outcome()
        self._servers = [Server(address, load.connections) for address in load.addresses]
        self._heads = [head(host, port) for host, port in load.addresses]

    async def run(self) -> Outcome:
        """Send everything, and wait for all answers."""
        began = time.process_time()
        waiting = set[asyncio.Task[None]]()
        for k, (stream, places) in enumerate(self._load.requests):
            due = self._load.begin + k * self._load.spacing
            late = time.monotonic() - due
            if late < 0:
                await asyncio.sleep(-late)
                late = time.monotonic() - due
            self._outcome.lateness.append(late)
            task = asyncio.create_task(self._answer(stream, places, due, self._load.bodies[k % len(self._load.bodies)]))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
        await asyncio.gather(*waiting)
        for server in self._servers:
            server.close()
        self._outcome.cpu_seconds = time.process_time() - began
        return self._outcome

    async def _answer(self, stream: str, places: tuple[int, ...], due: float, body: bytes) -> None:
        """Send a request until a server takes it."""
        outcome, attempt = self._outcome, 0
        while True:
            place = places[min(attempt, len(places) - 1)]
            status = await self._servers[place].ask(self._heads[place] % (stream.encode(), len(body)) + body)
            now = time.monotonic()
            if status == OK:
                outcome.due.append(due)
                outcome.latencies.append(now - due)
                return
            outcome.failures.add(status)
            if now - due > PATIENCE_SECONDS:
                outcome.failed += 1
                return
            attempt += 1
            outcome.retries += 1
            await asyncio.sleep(RETRY_SECONDS)


def head(host: str, port: int) -> bytes:
    """Give the head of a request, without its stream and the length of its body."""
    given = f"host: {host}:{port}\r\ncontent-type: application/json\r\ncontent-length: "
    return b"POST /observe?stream=%b HTTP/1.1\r\n" + given.encode() + b"%d\r\n\r\n"


def run(load: Load) -> Outcome:
    """Send a load, on the faster event loop."""
    import uvloop

    return uvloop.run(Run(load).run())
