"""One connection to Redis that stays open, for appends: many short commands whose answers are waited for."""

import asyncio
from collections.abc import Sequence
from typing import Any

from hiredis import Reader, pack_command
from redis.asyncio.connection import AbstractConnection, ConnectionPool, DefaultParser
from redis.backoff import AbstractBackoff
from redis.exceptions import ConnectionError as DisconnectedError
from redis.exceptions import ReadOnlyError
from redis.exceptions import TimeoutError as SilentError

from app.storage.redis.transport import transport_of

INCOMPLETE = object()


class DedicatedConnection:
    """Writes commands to a connection of a pool and reads the answers, one exchange at a time.

    The pool connects: it knows addresses, passwords and certificates, and asks Sentinels. After that, commands bypass
    redis-py, whose streams, timeouts and encoders cost several times as much as the command itself.
    """

    def __init__(self, pool: ConnectionPool, timeout_seconds: float, retries: int, backoff: AbstractBackoff) -> None:
        self._pool, self._timeout_seconds = pool, timeout_seconds
        self._retries, self._backoff = retries, backoff
        self._connection: AbstractConnection | None = None
        self._exchanges: Exchanges | None = None

    async def exchange(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Send commands and give their answers, errors included; send all again if the connection breaks."""
        sent = b"".join(map(pack_command, commands))
        for failures in range(1, self._retries + 2):
            try:
                exchanges = self._exchanges if self._exchanges and self._exchanges.is_open else await self._connect()
                answers = await exchanges.exchange(sent, len(commands), self._timeout_seconds)
                break
            except (DisconnectedError, SilentError, OSError):
                await self.close()
                if failures > self._retries:
                    raise
                await asyncio.sleep(self._backoff.compute(failures))
        if any(isinstance(answer, ReadOnlyError) for answer in answers):
            await self.close()  # no longer the primary: the pool must find the new one
        return answers

    async def close(self) -> None:
        """Disconnect, and give the connection back to the pool."""
        connection, self._connection, self._exchanges = self._connection, None, None
        if connection is not None:
            await connection.disconnect(nowait=True)
            await self._pool.release(connection)

    async def _connect(self) -> "Exchanges":
        await self.close()
        self._connection = await self._pool.get_connection()  # type: ignore[no-untyped-call] # its decorator has no types
        self._exchanges = Exchanges(transport_of(self._connection))
        return self._exchanges


class Exchanges(asyncio.Protocol):
    """Reads the answers from a transport, in place of redis-py's protocol."""

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
        """Tell whether the connection is open, as far as is known."""
        return not self._transport.is_closing()

    async def exchange(self, sent: bytes, count: int, timeout_seconds: float) -> list[Any]:
        """Write commands and wait for `count` answers."""
        loop = asyncio.get_running_loop()
        self._answers, self._count, self._end = [], count, loop.create_future()
        patience = loop.call_later(timeout_seconds, self._fail, SilentError(f"no answer in {timeout_seconds:g} s"))
        try:
            self._transport.write(sent)
            await self._end
        except BaseException:
            self._transport.abort()  # a late answer must not be taken for that of a later command
            raise
        finally:
            patience.cancel()
            self._end = None
        return self._answers

    def data_received(self, data: bytes) -> None:
        """Read answers; the last one ends the exchange."""
        if self._end is None or self._end.done():
            self._transport.abort()  # nobody waits for an answer
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
        """Fail the current exchange."""
        self._fail(DisconnectedError(str(error or "the server closed the connection")))
        self._before.connection_lost(error)

    def _fail(self, error: Exception) -> None:
        if self._end is not None and not self._end.done():
            self._end.set_exception(error)
