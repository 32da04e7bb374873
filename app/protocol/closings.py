"""Counts and logs why connections were closed; clients cannot fill the log with it."""

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Final

from app import metrics

PAUSE_SECONDS: Final = 60.0
REASONS: Final = {
    "invalid": "a client did not send HTTP",
    "head": "the head of a request was too long",
    "slow_head": "the head of a request arrived too slowly (ITAN_HEAD_SECONDS)",
    "slow_body": "the body of a request arrived too slowly (ITAN_STALL_SECONDS)",
    "unread": "an answer was read too slowly (ITAN_STALL_SECONDS)",
    "room": "there are too many (ITAN_MAX_CONNECTIONS); the connections that were idle longest made room",
    "full": "there are too many (ITAN_MAX_CONNECTIONS), and all have requests; only probes get an answer",
    "bodies": "request bodies took all their memory (ITAN_BODY_BUDGET_MB)",
    "files": "the process may not open more files (ulimit -n)",
}
"""Reasons for the log; the end of an idle connection is not worth a line."""
WARNINGS: Final = frozenset(("room", "full", "bodies", "files"))
"""Reasons that an operator must know."""

logger = logging.getLogger(__name__)


class Closings:
    """Logs one line a minute for each reason, the first one at once."""

    def __init__(self, counters: Mapping[str, metrics.Counter]) -> None:
        self._counters = counters
        self._untold: Counter[str] = Counter()
        self._told_at: dict[str, float] = {}

    def note(self, reason: str, now: float, count: int = 1) -> None:
        """Count connections."""
        self._counters[reason].inc(count)
        if reason in REASONS:
            self._untold[reason] += count
            self._tell(reason, now)

    def tell(self, now: float) -> None:
        """Log what was held back and is due."""
        for reason in list(self._untold):
            self._tell(reason, now)

    def _tell(self, reason: str, now: float) -> None:
        if now - self._told_at.get(reason, -PAUSE_SECONDS) < PAUSE_SECONDS:
            return
        self._told_at[reason] = now
        level = logging.WARNING if reason in WARNINGS else logging.INFO
        logger.log(level, "closed %d connections: %s", self._untold.pop(reason), REASONS[reason])
