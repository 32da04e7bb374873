"""Rates are counted by every store, and by a Redis for all workers together."""

from contextlib import suppress

import limits
import pytest
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from app.security import RateLimited
from app.security.grants import Grant
from app.security.quotas import Quotas, key_of, wait_seconds
from app.storage import Position, Snapshot, open_store
from tests.contract.conftest import SERVED

RATE = limits.parse("10/minute")


def grant(name: str = "ci") -> Grant:
    return Grant(b"", frozenset(), "*", name, samples=RATE)


async def test_so_much_passes_and_no_more(store):
    limiter = SlidingWindowCounterRateLimiter(store.windows)
    assert [await limiter.hit(RATE, "samples", "ci", cost=cost) for cost in (6, 5, 4, 1)] == [True, False, True, False]
    assert await limiter.hit(RATE, "samples", "other", cost=10)
    assert await limiter.hit(RATE, "requests", "ci", cost=10)
    window = await store.windows.get_sliding_window(key_of(grant(), "samples", RATE), 60)
    assert (window[0], window[2]) == (0, 10)
    assert 0 < wait_seconds(window, RATE, 1) <= 120
    await store.create("s", Snapshot(Position(0, 0), b"start"))  # the keys of rates are in nobody's way
    assert await store.streams("", 10) == ["s"]


@pytest.mark.parametrize("store_url", SERVED, indirect=True)
async def test_workers_of_one_redis_count_together(store, store_url):
    other = open_store(store_url)
    await other.open()
    one, two = (Quotas(each.windows, lambda: 0.0) for each in (store, other))
    passed = 0
    for quotas in [one, two] * 10:
        with suppress(RateLimited):
            await quotas.charge(grant(), "samples", 1)
            passed += 1
    assert passed == 10
    await other.close()
