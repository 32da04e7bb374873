"""What a test may ask for: a service in this process, a Redis server of its own."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.app.harness import Service
from tests.servers import RedisServer, find_valkey


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """Give a service with a store in memory."""
    async with Service() as running:
        yield running


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """Give an empty server."""
    server = RedisServer(find_valkey(), tmp_path)
    server.start()
    yield server
    server.kill()
