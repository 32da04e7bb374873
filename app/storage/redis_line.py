"""One connection to Redis that is kept, for commands that are many, short and waited for."""

import asyncio
from collections.abc import Sequence
from typing import Any

from hiredis import Reader, pack_command
from redis.asyncio.connection import AbstractConnection, ConnectionPool, DefaultParser
from redis.backoff import AbstractBackoff
from redis.exceptions import ConnectionError as DisconnectedError
from redis.exceptions import ReadOnlyError
from redis.exceptions import TimeoutError as SilentError

INCOMPLETE = object()


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

    async def exchange(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Send commands and give their answers, errors among them; all are sent again if the connection breaks."""
        sent = b"".join(map(pack_command, commands))
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
        self._reader = Reader(
            protocolError=DisconnectedError, replyError=DefaultParser.parse_error, notEnoughData=INCOMPLETE
        )
        self._answers: list[Any] = []
        self._count = 0
        self._end: asyncio.Future[None] | None = None
        transport.set_protocol(self)

    @property
    def is_open(self) -> bool:
        """Tell whether the other side is still there, as far as is known."""
        return not self._transport.is_closing()

    async def exchange(self, sent: bytes, count: int, timeout_seconds: float) -> list[Any]:
        """Write commands and wait for so many answers."""
        loop = asyncio.get_running_loop()
        self._answers, self._count, self._end = [], count, loop.create_future()
        patience = loop.call_later(timeout_seconds, self._fail, SilentError(f"no answer in {timeout_seconds:g} s"))
        try:
            self._transport.write(sent)
            await self._end
        except BaseException:
            self._transport.abort()  # what still comes must not be taken for an answer to later commands
            raise
        finally:
            patience.cancel()
            self._end = None
        return self._answers

    def data_received(self, data: bytes) -> None:
        """Read on; the exchange ends with its last answer."""
        if self._end is None or self._end.done():
            self._transport.abort()  # an answer that nobody waits for
            return
        self._reader.feed(data)
        try:
            while (answer := self._reader.gets()) is not INCOMPLETE:
                self._answers.append(answer)
        except Exception as error:
            self._fail(DisconnectedError(f"not Redis' protocol: {error}"))
            return
        if len(self._answers) > self._count:
            self._fail(DisconnectedError("more answers than commands"))
        elif len(self._answers) == self._count:
            self._end.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        """End the exchange under way."""
        self._fail(DisconnectedError(str(error or "the server closed the connection")))
        self._before.connection_lost(error)

    def _fail(self, error: Exception) -> None:
        if self._end is not None and not self._end.done():
            self._end.set_exception(error)
