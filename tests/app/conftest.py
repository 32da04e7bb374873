"""A running service for each test that asks for one."""

from collections.abc import AsyncIterator

import pytest

from tests.app.harness import Service


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """Give a service with a store in memory."""
    async with Service() as running:
        yield running
