"""What streams are said to take, against what the allocator says."""

import gc
import tracemalloc
from sys import getsizeof

import numpy as np
import pytest

from app.storage import Position
from app.streams.state.memory import SESSION_BYTES, held_bytes
from app.streams.state.state import StreamState, new_state
from core import Detector, DetectorConfig
from tests.app.harness import blobs

MANY = 4
SHARED_BYTES = 4_000
"""Numbers and names that all streams share, and each of them counts."""


def traced(make) -> tuple[float, list]:
    """Give what the allocator says of one of many things made, and the things."""
    make(0)
    gc.collect()
    tracemalloc.start()
    made = [make(number) for number in range(MANY)]
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken / MANY, made


@pytest.mark.parametrize(("m", "n"), [(2, 5), (2, 200), (8, 100), (40, 80)])
def test_streams_weigh_what_the_allocator_gave_them(m, n):
    X = blobs(n, m)

    def observed(number: int) -> StreamState:
        state = new_state(Detector(DetectorConfig(n_features=m)), Position(0, 0))
        for start in range(0, n, 7):
            state.detector.observe(X[start : start + 7])
        return state

    body = observed(0).to_bytes()
    for make in (observed, lambda number: StreamState.from_bytes(body, Position(n, 0))):
        taken, states = traced(make)
        said = np.mean([state.memory_bytes() - SESSION_BYTES for state in states])
        assert abs(said - taken) < 0.2 * taken + SHARED_BYTES


def test_what_is_held_twice_counts_once():
    array = np.zeros(1000)
    assert held_bytes([array, array, array[5:]]) < 8000 + 1000


def test_what_all_share_counts_for_nobody():
    assert held_bytes([np, Detector, held_bytes]) == getsizeof([np, Detector, held_bytes])
