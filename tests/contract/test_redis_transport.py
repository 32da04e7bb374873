"""The parts of redis-py that app/storage/redis/transport.py and dedicated.py rely on, though they are not public."""

import asyncio
import hashlib
import inspect
from collections.abc import Callable

import pytest
from redis.asyncio import connection
from redis.asyncio.connection import AbstractConnection, ConnectionPool

from app.storage.redis.transport import transport_of
from tests.servers import RedisServer, find_valkey

READ = {
    connection.Connection._connect: "24cd655d5f27ddbb",
    connection.UnixDomainSocketConnection._connect: "c46949736ceeafad",
    AbstractConnection.disconnect: "11194f01c2f6d3c2",
}


@pytest.mark.parametrize("function", READ, ids=lambda function: function.__qualname__)
def test_redis_py_is_the_version_that_was_read(function: Callable[..., object]):
    digest = hashlib.sha256(inspect.getsource(function).encode()).hexdigest()
    assert digest[:16] == READ[function], (
        f"redis-py has changed {function.__qualname__}. Read it: does connecting still put an asyncio.StreamWriter "
        "into `_writer`, and does disconnecting still close it? Adapt app/storage/redis/transport.py, run "
        "tests/contract/test_redis_dedicated.py, then put the new digest here."
    )


async def test_a_connection_has_an_open_transport_until_it_is_disconnected(tmp_path):
    server = RedisServer(find_valkey(), tmp_path)
    server.start()
    pool = ConnectionPool.from_url(server.url, protocol=2)
    try:
        connected = await pool.get_connection()
        transport = transport_of(connected)
        assert isinstance(transport, asyncio.WriteTransport)
        assert isinstance(transport.get_protocol(), asyncio.StreamReaderProtocol)
        assert not transport.is_closing()
        await connected.disconnect(nowait=True)
        assert transport.is_closing()
        await pool.release(connected)
    finally:
        await pool.disconnect()
        server.kill()
