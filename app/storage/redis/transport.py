"""The transport under a connection of redis-py: the only place that uses redis-py's private parts.

tests/contract/test_redis_transport.py says what to read when a new redis-py changes them.
"""

import asyncio

from redis.asyncio.connection import AbstractConnection


def transport_of(connection: AbstractConnection) -> asyncio.WriteTransport:
    """Give the transport of a connected connection; redis-py has no public way to it."""
    writer = connection._writer
    assert writer is not None
    return writer.transport
