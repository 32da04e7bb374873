"""A receiver of notices in this process: it keeps what it gets, and answers as it is told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec


@dataclass
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Receiver:
    """Answers each request with the next of `answers`, and then with `status`."""

    port: int = 0
    status: int = 200
    answers: list[int] = field(default_factory=list)
    headers: str = ""
    received: list[Received] = field(default_factory=list)
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def ids(self) -> list[str]:
        return [each.id for each in self.received]

    async def wait_for(self, count: int) -> list[Received]:
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.received) >= count)
        return self.received

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
            body = await reader.readexactly(int(headers["content-length"]))
        except asyncio.IncompleteReadError:
            writer.close()
            return
        async with self.arrived:
            self.received.append(Received(first.split(" ")[1], headers, body))
            self.arrived.notify_all()
        status = self.answers.pop(0) if self.answers else self.status
        writer.write(f"HTTP/1.1 {status} Said\r\n{self.headers}Content-Length: 0\r\n\r\n".encode())
        writer.close()


@asynccontextmanager
async def receiving(**given: Any) -> AsyncIterator[Receiver]:
    """Run a receiver on a free port of the loopback."""
    receiver = Receiver(**given)
    server = await asyncio.start_server(receiver.answer, "127.0.0.1", receiver.port)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver
