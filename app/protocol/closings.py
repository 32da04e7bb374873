"""Counts why connections were closed, and says so, but not as often as clients can bring it about."""

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Final

import prometheus_client

PAUSE_SECONDS: Final = 60.0
REASONS: Final = {
    "invalid": "what came was not HTTP",
    "head": "the head of a request was too long",
}
"""For the log; what an operator must know is a warning."""
WARNINGS: Final = frozenset[str]()

logger = logging.getLogger(__name__)


class Closings:
    """One line a minute for each reason, the first at once."""

    def __init__(self, counters: Mapping[str, prometheus_client.Counter]) -> None:
        self._counters = counters
        self._untold: Counter[str] = Counter()
        self._told_at: dict[str, float] = {}

    def note(self, reason: str, now: float) -> None:
        """Count a connection."""
        self._counters[reason].inc()
        self._untold[reason] += 1
        self._tell(reason, now)

    def tell(self, now: float) -> None:
        """Say what was kept back and is due."""
        for reason in list(self._untold):
            self._tell(reason, now)

    def _tell(self, reason: str, now: float) -> None:
        if now - self._told_at.get(reason, -PAUSE_SECONDS) < PAUSE_SECONDS:
            return
        self._told_at[reason] = now
        level = logging.WARNING if reason in WARNINGS else logging.INFO
        count = self._untold.pop(reason)
        logger.log(level, "connections closed: %d, since %s", count, REASONS[reason])
