"""When to try again: soon, then less and less often, and never all at once."""

import logging
from collections.abc import Callable
from random import Random
from typing import Final, TypeVar

from app.pull.errors import Permanent, Stopped, Temporary

T = TypeVar("T")
FIRST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 60.0
LONGEST_ASKED_SECONDS: Final = 600.0

logger = logging.getLogger(__name__)


class Patience:
    """Tries again until it works; `wait` tells whether somebody asked for an end meanwhile.

    With `limit_seconds` it gives up after so many seconds of waits without success.
    """

    def __init__(self, wait: Callable[[float], bool], lot: Random, limit_seconds: float | None = None) -> None:
        self._wait, self._lot, self._limit_seconds = wait, lot, limit_seconds
        self._pause, self._waited = FIRST_SECONDS, 0.0

    def until_done(self, call: Callable[[], T]) -> T:
        """Call until it does not fail with Temporary. Raises Stopped, Permanent, and what else the call raises."""
        while True:
            try:
                done = call()
            except Temporary as error:
                self.pause_after(error)
            else:
                self._pause, self._waited = FIRST_SECONDS, 0.0
                return done

    def pause_after(self, error: Exception) -> None:
        """Wait after a failure: twice as long each time, some of it left to chance. Raises Stopped or Permanent."""
        asked = error.retry_after_seconds if isinstance(error, Temporary) else 0.0
        seconds = max(min(asked, LONGEST_ASKED_SECONDS), self._pause * self._lot.uniform(0.5, 1.0))
        if self._limit_seconds is not None and self._waited + seconds > self._limit_seconds:
            raise Permanent(f"{error}; gave up after {self._waited:.0f} s") from None
        logger.warning("%s; next try in %.1f s", error, seconds)
        self.wait(seconds)
        self._waited += seconds
        self._pause = min(2 * self._pause, LONGEST_SECONDS)

    def wait(self, seconds: float) -> None:
        """Wait. Raises Stopped."""
        if self._wait(seconds):
            raise Stopped
