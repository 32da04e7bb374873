"""Waits longer and longer before a store that has refused is asked again."""

import math

from app.storage import StoreUnavailable
from app.streams.open.clock import Clock

MAX_PAUSE_SECONDS = 5.0


class Backoff:
    """The pauses after refusals in a row: none after the first, then 1, 2 and 4 seconds, then MAX_PAUSE_SECONDS.

    A try is not cheap: a refused write leaves the engine ahead of the log, so that the next reader waits for a replay,
    and a read from a store that hangs takes seconds to fail.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused = 0  # in a row
        self._retry_at = -math.inf
        self._refusal: StoreUnavailable | None = None

    def note_refusal(self, error: StoreUnavailable) -> None:
        """Begin the next pause."""
        self._refused, self._refusal = self._refused + 1, error
        pause = min(2.0 ** (self._refused - 2), MAX_PAUSE_SECONDS) if self._refused > 1 else 0.0
        self._retry_at = self._clock.monotonic() + pause

    def note_success(self) -> None:
        """End the pauses."""
        self._refused, self._refusal = 0, None

    def check(self) -> None:
        """Raise the last refusal again during a pause."""
        if self._refusal is not None and self._clock.monotonic() < self._retry_at:
            raise StoreUnavailable(self._refusal.reason, self._refusal.cause)
