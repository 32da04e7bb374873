import pytest

from app.storage import StoreUnavailable
from app.streams.open.backoff import MAX_PAUSE_SECONDS, Backoff
from tests.app.harness import FakeClock

PAUSES = (0.0, 1.0, 2.0, 4.0, MAX_PAUSE_SECONDS, MAX_PAUSE_SECONDS)


def test_pauses_grow_with_each_refusal_in_a_row():
    clock = FakeClock()
    backoff = Backoff(clock)
    for number, seconds in enumerate(PAUSES):
        backoff.note_refusal(StoreUnavailable(f"refusal {number}"))
        if seconds:
            clock.advance(seconds - 0.01)
            with pytest.raises(StoreUnavailable, match=f"refusal {number}"):
                backoff.check()
            clock.advance(0.01)
        backoff.check()


def test_a_success_ends_the_pauses():
    backoff = Backoff(FakeClock())
    for _ in range(3):
        backoff.note_refusal(StoreUnavailable("full"))
    backoff.note_success()
    backoff.check()
    backoff.note_refusal(StoreUnavailable("full"))
    backoff.check()
