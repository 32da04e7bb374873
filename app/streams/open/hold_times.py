"""How long a worker keeps a stream's lease before it hands the stream over to a worker that asks for it."""

from dataclasses import dataclass

from app.streams.open.clock import Clock

SHORTEST_SECONDS, LONGEST_SECONDS = 2.0, 30.0
SOON = 4.0
"""A stream comes back soon if it was away for less than this many times its last hold time."""
YIELD_SECONDS = 0.25
"""After a handover, wait this long before asking for the stream again: the worker that asked goes first."""


@dataclass(slots=True)
class Hold:
    """The time that a stream is held here; handed_over_at is None while it is."""

    seconds: float
    began_at: float
    handed_over_at: float | None = None


class HoldTimes:
    """The hold times of all streams. A stream that comes back soon is held twice as long as the last time.

    Without this, two workers that both get requests for a stream would spend their time loading it.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._holds: dict[str, Hold] = {}
        self._handed_over: dict[str, Hold] = {}
        """Few, and apart: to look through all streams with each renewal takes time."""

    def next_seconds(self, stream: str) -> float:
        """Give how long a stream would be held from now on."""
        last = self._handed_over.get(stream)
        if last is None or last.handed_over_at is None or self._is_long_ago(last, last.handed_over_at):
            return SHORTEST_SECONDS
        return min(2 * last.seconds, LONGEST_SECONDS)

    def _is_long_ago(self, last: Hold, handed_over_at: float) -> bool:
        return self._clock.monotonic() > handed_over_at + SOON * last.seconds

    def begin(self, stream: str, seconds: float) -> None:
        """Begin to hold a stream."""
        self._handed_over.pop(stream, None)
        self._holds[stream] = Hold(seconds, self._clock.monotonic())

    def is_over(self, stream: str) -> bool:
        """Tell whether a stream may be handed over."""
        hold = self._holds.get(stream)
        return hold is None or self._clock.monotonic() >= hold.began_at + hold.seconds

    def end(self, stream: str, *, handed_over: bool) -> None:
        """End a hold; it is remembered only if the stream was handed over."""
        hold = self._holds.pop(stream, None)
        if handed_over and hold is not None:
            hold.handed_over_at = self._clock.monotonic()
            self._handed_over[stream] = hold

    def pause_seconds(self, stream: str) -> float:
        """Give how long to wait before asking for a stream that was just handed over."""
        hold = self._handed_over.get(stream)
        if hold is None or hold.handed_over_at is None:
            return 0.0
        return max(0.0, hold.handed_over_at + YIELD_SECONDS - self._clock.monotonic())

    def forget_old(self) -> None:
        """Forget the streams that can no longer come back soon."""
        before = self._clock.monotonic() - SOON * LONGEST_SECONDS
        for stream, hold in list(self._handed_over.items()):
            if hold.handed_over_at is not None and hold.handed_over_at < before:
                del self._handed_over[stream]
