"""How long a stream stays with a worker before it is handed over to another that asks for it."""

from dataclasses import dataclass

from app.streams.open.clock import Clock

SHORTEST_SECONDS, LONGEST_SECONDS = 2.0, 30.0
SOON = 4.0
"""A stream comes back soon if it was away for less than so many times its stay."""
YIELD_SECONDS = 0.25
"""So long after a hand-over the one who asked goes first."""


@dataclass(slots=True)
class Stay:
    """A stream's time here; left_at says when it was handed over."""

    seconds: float
    began_at: float
    left_at: float | None = None


class Stays:
    """The stays of all streams, twice as long each time that one comes back soon.

    So workers that are asked for one stream in turns do not spend their time opening it.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stays: dict[str, Stay] = {}

    def next_seconds(self, stream: str) -> float:
        """Give the length of a stay that would begin now."""
        last = self._stays.get(stream)
        if last is None or last.left_at is None or self._clock.monotonic() > last.left_at + SOON * last.seconds:
            return SHORTEST_SECONDS
        return min(2 * last.seconds, LONGEST_SECONDS)

    def begin(self, stream: str, seconds: float) -> None:
        """Note that a stream is here."""
        self._stays[stream] = Stay(seconds, self._clock.monotonic())

    def is_over(self, stream: str) -> bool:
        """Tell whether a stream has stayed long enough."""
        stay = self._stays.get(stream)
        return stay is None or self._clock.monotonic() >= stay.began_at + stay.seconds

    def end(self, stream: str, *, handed_over: bool) -> None:
        """Note that a stream is here no more."""
        stay = self._stays.get(stream)
        if handed_over and stay is not None:
            stay.left_at = self._clock.monotonic()
        else:
            self._stays.pop(stream, None)

    def pause_seconds(self, stream: str) -> float:
        """Give the time to wait before a stream that was just handed over is asked for again."""
        stay = self._stays.get(stream)
        if stay is None or stay.left_at is None:
            return 0.0
        return max(0.0, stay.left_at + YIELD_SECONDS - self._clock.monotonic())

    def forget_old(self) -> None:
        """Forget the streams that would not come back soon any more."""
        before = self._clock.monotonic() - SOON * LONGEST_SECONDS
        for stream in [s for s, stay in self._stays.items() if stay.left_at is not None and stay.left_at < before]:
            del self._stays[stream]
