"""An answer on the dedicated connection belongs to its command, or there is none."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.asyncio.connection import ConnectionPool
from redis.exceptions import ConnectionError as DisconnectedError
from redis.exceptions import (
    MovedError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)

from app.storage import Entry, Position, Snapshot, StoreUnavailable
from app.storage.redis import RedisStore
from app.storage.redis.dedicated import DedicatedConnection, Exchanges
from app.storage.redis.servers import RETRIES, CountedBackoff
from tests.servers import RedisServer, find_valkey

START = Snapshot(Position(0, 0), b"start")
TIMEOUT_SECONDS = 0.5


def one(seq: int) -> Entry:
    return Entry(Position(seq, 0), b"body", seq, (f"id {seq}",))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    running = RedisServer(find_valkey(), tmp_path)
    running.start()
    yield running
    running.kill()


@pytest.fixture
async def store(server: RedisServer) -> AsyncIterator[RedisStore]:
    opened = RedisStore(f"{server.url}?socket_timeout={TIMEOUT_SECONDS}")
    await opened.open()
    await opened.create("s", START)
    yield opened
    await opened.close()


@pytest.fixture
async def dedicated(server: RedisServer) -> AsyncIterator[DedicatedConnection]:
    pool = ConnectionPool.from_url(server.url, protocol=2)
    opened = DedicatedConnection(pool, TIMEOUT_SECONDS, RETRIES, CountedBackoff())
    yield opened
    await opened.close()
    await pool.disconnect()


async def test_the_server_closes_the_connection_between_two_appends(server, store):
    for seq in range(1, 6):
        await store.append("s", Position(seq - 1, 0), one(seq))
        with server.admin() as admin:
            admin.client_kill_filter(_type="normal", skipme=True)
    assert await store.entries("s", Position(0, 0), 9) == [one(seq) for seq in range(1, 6)]


async def test_a_hung_server_is_unavailable_in_time_and_its_late_answers_are_nobodys(server, store):
    await store.append("s", Position(0, 0), one(1))
    server.freeze()
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match="Redis"):
        await store.append("s", Position(1, 0), one(2))
    assert time.monotonic() - began < 10 * TIMEOUT_SECONDS
    server.thaw()
    await store.append("s", Position(1, 0), one(2))
    await store.append("s", Position(2, 0), one(3))
    assert await store.entries("s", Position(0, 0), 9) == [one(1), one(2), one(3)]


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_late_answer_is_not_taken_for_that_of_the_next_command(server, dedicated, is_cancelled):
    assert await dedicated.exchange([("ECHO", "before")]) == [b"before"]
    server.freeze()
    late = asyncio.create_task(dedicated.exchange([("ECHO", "late"), ("ECHO", "later")]))
    if is_cancelled:
        await asyncio.sleep(0)
        late.cancel()
    with pytest.raises((RedisError, asyncio.CancelledError)):
        await late
    server.thaw()
    for word in (b"next", b"last"):
        assert await dedicated.exchange([("ECHO", word), ("PING",)]) == [word, b"PONG"]


async def test_groups_that_share_the_connection_keep_their_order(server, store):
    store = RedisStore(server.url)  # patient: no group is sent twice
    await store.open()
    appends = [store.append("s", Position(seq - 1, 0), one(seq)) for seq in range(1, 400)]
    assert await asyncio.gather(*appends) == [None] * 399
    assert await store.entries("s", Position(0, 0), 400) == [one(seq) for seq in range(1, 400)]
    await store.close()


async def test_errors_take_the_place_of_answers_and_are_redis_pys(server, dedicated):
    for words, kind in {
        ("EVALSHA", "0" * 40, 0): NoScriptError,
        ("NONE",): ResponseError,
        **{
            ("EVAL", f"return redis.error_reply('{said}')", 0): kind
            for said, kind in {
                "READONLY this is a replica": ReadOnlyError,
                "OOM full": OutOfMemoryError,
                "MOVED 1 127.0.0.1:1": MovedError,
                "TRYAGAIN later": TryAgainError,
                "LOADING the file": DisconnectedError,
            }.items()
        },
    }.items():
        before, error, after = await dedicated.exchange([("PING",), words, ("PING",)])
        assert (before, after) == (b"PONG", b"PONG")
        assert isinstance(error, kind)


@pytest.fixture
async def wired() -> AsyncIterator[tuple[Exchanges, socket.socket]]:
    """A wire, and the other end of it."""
    own_end, other_end = socket.socketpair()
    transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=own_end)
    with other_end:
        yield Exchanges(transport), other_end
    transport.abort()
    await asyncio.sleep(0)


async def test_answers_may_come_in_any_pieces(wired):
    wire, server = wired
    answers = asyncio.create_task(wire.exchange(b"commands", 4, 5))
    whole = b"*2\r\n$2\r\nok\r\n:7\r\n$-1\r\n-ERR no\r\n+PONG\r\n"
    for place in range(len(whole)):
        server.send(whole[place : place + 1])
        await asyncio.sleep(0)
    row, nothing, error, pong = await answers
    assert (row, nothing, str(error), pong) == ([b"ok", 7], None, "no", b"PONG")


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n", b"+PONG\r\n+PONG\r\n", b"-MOVED nowhere\r\n"])
async def test_what_is_out_of_step_ends_the_connection(wired, said):
    wire, server = wired
    server.send(said)
    with pytest.raises(DisconnectedError, match=r"protocol|more answers"):
        await wire.exchange(b"command", 1, 5)
    assert not wire.is_open


async def test_what_nobody_asked_for_ends_the_connection(wired):
    wire, server = wired
    server.settimeout(5)
    server.send(b"+PONG\r\n")
    assert await asyncio.to_thread(server.recv, 1) == b""
    assert not wire.is_open


async def test_an_exchange_that_nobody_waits_for_any_more_ends_the_connection(wired):
    wire, _ = wired
    exchange = asyncio.create_task(wire.exchange(b"command", 1, 5))
    await asyncio.sleep(0)
    exchange.cancel()
    with pytest.raises(asyncio.CancelledError):
        await exchange
    assert not wire.is_open
