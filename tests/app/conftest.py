"""A running service, and a log that can be read, for each test that asks for one."""

import logging
from collections.abc import AsyncIterator, Iterator

import pytest
import structlog

from tests.app.harness import Service
from tests.app.log import Log


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """Give a service with a store in memory."""
    async with Service() as running:
        yield running


@pytest.fixture
def log() -> Iterator[Log]:
    """Give a log to be set up; at the end the process logs as it did."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield Log()
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)
