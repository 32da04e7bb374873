"""One connection to Redis that is kept, for commands that are many, short and waited for."""

import asyncio
from collections.abc import Sequence
from typing import Any

from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.backoff import AbstractBackoff
from redis.exceptions import ConnectionError as DisconnectedError
from redis.exceptions import ReadOnlyError
from redis.exceptions import TimeoutError as SilentError

from app.storage.resp import IncompleteReply, pack, read_replies


class RedisLine:
    """Writes commands to a connection of a pool and reads the answers, one exchange at a time.

    The pool connects: it knows addresses, passwords and certificates, and asks Sentinels. What comes after that goes
    past redis-py, whose streams, timeouts and encoders take several times what the command itself does.
    """

    def __init__(self, pool: ConnectionPool, timeout_seconds: float, retries: int, backoff: AbstractBackoff) -> None:
        self._pool, self._timeout_seconds = pool, timeout_seconds
        self._retries, self._backoff = retries, backoff
        self._connection: AbstractConnection | None = None
        self._wire: Wire | None = None

    async def exchange(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Send commands and give their answers, errors among them; all are sent again if the connection breaks."""
        sent = pack(commands)
        for failures in range(1, self._retries + 2):
            try:
                wire = self._wire if self._wire is not None and self._wire.is_open else await self._connect()
                answers = await wire.exchange(sent, len(commands), self._timeout_seconds)
                break
            except (DisconnectedError, SilentError, OSError):
                await self.close()
                if failures > self._retries:
                    raise
                await asyncio.sleep(self._backoff.compute(failures))
        if any(isinstance(answer, ReadOnlyError) for answer in answers):
            await self.close()  # a primary no more: the next one must be looked for
        return answers

    async def close(self) -> None:
        """Disconnect, and give the connection back to the pool."""
        connection, self._connection, self._wire = self._connection, None, None
        if connection is not None:
            await connection.disconnect(nowait=True)
            await self._pool.release(connection)

    async def _connect(self) -> "Wire":
        await self.close()
        self._connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        writer = self._connection._writer
        assert writer is not None
        self._wire = Wire(writer.transport)
        return self._wire


class Wire(asyncio.Protocol):
    """Takes the place of what read from a transport so far."""

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self._transport, self._before = transport, transport.get_protocol()
        self._data, self._count = b"", 0
        self._answers: asyncio.Future[list[Any]] | None = None
        transport.set_protocol(self)

    @property
    def is_open(self) -> bool:
        """Tell whether the other side is still there, as far as is known."""
        return not self._transport.is_closing()

    async def exchange(self, sent: bytes, count: int, timeout_seconds: float) -> list[Any]:
        """Write commands and wait for so many answers."""
        loop = asyncio.get_running_loop()
        self._data, self._count, self._answers = b"", count, loop.create_future()
        patience = loop.call_later(timeout_seconds, self._fail, SilentError(f"no answer in {timeout_seconds:g} s"))
        try:
            self._transport.write(sent)
            return await self._answers
        finally:
            patience.cancel()
            self._answers = None

    def data_received(self, data: bytes) -> None:
        """Read on; the exchange ends with its last answer."""
        self._data += data
        if self._answers is None or self._answers.done():
            self._transport.abort()  # an answer that nobody waits for
            return
        try:
            self._answers.set_result(read_replies(self._data, self._count))
        except IncompleteReply:
            return
        except Exception as error:
            self._fail(DisconnectedError(f"not Redis' protocol: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        """End the exchange under way."""
        self._fail(DisconnectedError(str(error or "the server closed the connection")))
        self._before.connection_lost(error)

    def _fail(self, error: Exception) -> None:
        if self._answers is not None and not self._answers.done():
            self._answers.set_exception(error)
