"""When to send a request again, and how long to wait before."""

import random
import time
from collections.abc import Callable
from typing import Final

from itan_client.errors import ApiError, ServiceUnreachable

NOTHING_CHANGED: Final = 429
PASSING: Final = {502, 503, 504}
"""502 and 504 are a proxy's: the request may have counted, as it may have if no answer came."""
FIRST_SECONDS, LONGEST_SECONDS = 0.5, 60.0

Failure = ApiError | ServiceUnreachable


class Retries:
    """The repeats of one request, for at most so many seconds.

    The wait doubles each time, with some of it left to chance, so that senders do not come back all at once.
    """

    def __init__(self, seconds: float, *, repeatable: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._repeatable = clock, repeatable
        self._ends = clock() + seconds
        self._wait_seconds = FIRST_SECONDS

    def pause_after(self, error: Failure) -> float:
        """Give the seconds to wait before the next try. Raises the error if there must be none."""
        if not self._may_repeat(error):
            raise error
        asked = error.retry_after_seconds or 0.0 if isinstance(error, ApiError) else 0.0
        pause = max(asked, self._wait_seconds * random.uniform(0.5, 1.0))  # noqa: S311 - nothing secret is drawn
        if self._clock() + pause > self._ends:
            raise error
        self._wait_seconds = min(2 * self._wait_seconds, LONGEST_SECONDS)
        return pause

    def _may_repeat(self, error: Failure) -> bool:
        if isinstance(error, ServiceUnreachable):
            return self._repeatable or not error.was_sent
        return error.status == NOTHING_CHANGED or (error.status in PASSING and self._repeatable)
