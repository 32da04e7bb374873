import msgspec
import numpy as np
import pytest

from app.storage import Position
from app.streams.log.horizon import Horizon
from app.streams.state.state import StreamState, new_state
from core import Detector, DetectorConfig, InvalidSnapshot
from core.snapshot import encode_snapshot


def state():
    detector = Detector(DetectorConfig(n_features=2))
    detector.observe(np.random.default_rng(0).normal(size=(50, 2)))
    return StreamState(detector, Position(50, 0), Horizon(7, [(3, 1.5)]), 9.25)


def test_a_state_comes_back():
    body = state().to_bytes()
    again = StreamState.from_bytes(body, Position(50, 0))
    assert again.to_bytes() == body
    assert (again.horizon, again.newest_timestamp) == (Horizon(7, [(3, 1.5)]), 9.25)


def test_a_new_state_begins_at_the_next_sample():
    begun = new_state(Detector(DetectorConfig(n_features=1), first_seq=8), Position(7, 3))
    assert begun.horizon.oldest_seq == 8


@pytest.mark.parametrize("meta", [{}, {"oldest_seq": "1", "marks": [], "newest_timestamp": None}])
def test_another_header_is_refused(meta):
    with pytest.raises(InvalidSnapshot):
        StreamState.from_bytes(encode_snapshot("stream", 1, meta, {}), Position(0, 0))


def test_a_state_without_engine_is_refused():
    meta = msgspec.to_builtins({"oldest_seq": 1, "marks": [], "newest_timestamp": None})
    with pytest.raises(InvalidSnapshot, match="engine"):
        StreamState.from_bytes(encode_snapshot("stream", 1, meta, {}), Position(0, 0))


def test_every_flipped_byte_is_noticed():
    body = state().to_bytes()
    for place in range(0, len(body), max(1, len(body) // 200)):
        flipped = bytearray(body)
        flipped[place] ^= 0x10
        with pytest.raises(InvalidSnapshot):
            StreamState.from_bytes(bytes(flipped), Position(50, 0))
