"""Models for streams that start warm: read once for all that begin within a few seconds."""

import asyncio

import pytest

from app.storage import START, StoreUnavailable
from app.streams.errors import UnknownStream
from app.streams.open.models import FRESH_SECONDS, Models
from app.streams.state.state import new_state
from core import Detector, DetectorConfig
from tests.app.harness import FakeClock


class Loads:
    """Gives one outcome, and counts how often it is asked for it."""

    def __init__(self, outcome):
        self.outcome, self.n = outcome, 0

    async def __call__(self):
        self.n += 1
        await asyncio.sleep(0)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


async def test_a_model_is_read_once_for_all_that_begin_at_once():
    clock, state = FakeClock(), new_state(Detector(DetectorConfig(n_features=1)), START)
    models, loads = Models(clock), Loads(state)
    found = await asyncio.gather(*(models.find("s", loads) for _ in range(5)))
    assert (found, loads.n) == ([state.detector] * 5, 1)
    await models.find("t", loads)
    assert loads.n == 2
    clock.advance(FRESH_SECONDS)
    await models.find("s", loads)
    assert loads.n == 3


@pytest.mark.parametrize(
    ("outcome", "error"), [(None, UnknownStream), (StoreUnavailable("it hangs"), StoreUnavailable)]
)
async def test_what_cannot_be_read_is_asked_for_once_too(outcome, error):
    clock, loads = FakeClock(), Loads(outcome)
    models = Models(clock)
    for _ in range(3):
        with pytest.raises(error):
            await models.find("s", loads)
    assert loads.n == 1
    clock.advance(FRESH_SECONDS)
    loads.outcome = new_state(Detector(DetectorConfig(n_features=1)), START)
    assert await models.find("s", loads)
