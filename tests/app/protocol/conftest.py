"""A service on each event loop."""

from collections.abc import Iterator

import pytest

from tests.app.protocol.serving import Serving, serving


@pytest.fixture(scope="module", params=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def served(loop: str) -> Iterator[Serving]:
    """One service for all: a fault that one test leaves behind shows in the next."""
    with serving(loop) as running:
        yield running
