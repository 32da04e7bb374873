from hypothesis import given
from hypothesis import strategies as st

from app.streams.log.horizon import STEP, WATERMARKS, Horizon

DAY = 86_400.0


def test_the_newest_samples_are_kept():
    assert Horizon(1).advanced(next_seq=101, now=0.0, samples=10, seconds=DAY).oldest_seq == 91


def test_samples_grow_too_old():
    horizon = Horizon(1).advanced(1001, 0.0, 10**6, DAY)
    assert horizon.oldest_seq == 1
    for hours in range(1, 49):
        horizon = horizon.advanced(1001 + hours, hours * 3600.0, 10**6, DAY)
    assert horizon.oldest_seq <= 1001 + 24
    for _ in range(200):
        horizon = horizon.advanced(1050, 48 * 3600.0, 10**6, DAY)
    assert horizon.oldest_seq == 1001 + 24


def test_a_clock_gone_wrong_takes_a_tenth_at_most():
    horizon = Horizon(1).advanced(1001, 0.0, 10**6, DAY)
    leapt = horizon.advanced(1001, 1e12, 10**6, DAY)
    assert leapt.oldest_seq == 1 + 1000 // STEP
    assert leapt.advanced(1001, 1.0, 10**6, DAY).oldest_seq == leapt.oldest_seq


def test_a_clock_gone_back_takes_nothing():
    horizon = Horizon(1).advanced(1001, 1e9, 10**6, DAY)
    assert horizon.advanced(1101, 0.0, 10**6, DAY).oldest_seq == 1


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(-1e6, 1e6)), max_size=60))
def test_the_oldest_never_goes_back_and_marks_stay_few(steps):
    horizon, next_seq, now = Horizon(1), 1, 0.0
    for samples, seconds in steps:
        next_seq, now = next_seq + samples, now + seconds
        later = horizon.advanced(next_seq, now, 1000, DAY)
        assert horizon.oldest_seq <= later.oldest_seq <= next_seq
        assert next_seq - later.oldest_seq <= 1000
        assert len(later.watermarks) <= 2 * WATERMARKS
        horizon = later
