"""Sends a notice until it is delivered, or there is no sense in it any more."""

import asyncio
import logging
from typing import Final

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential_jitter

from app.metrics import Metrics
from app.notices.notice import Notice
from app.notices.posts import post_of
from app.notices.rule import Rule
from app.notices.sender import NotDelivered, Rejected, Sender
from app.streams.open.clock import Clock

AT_ONCE: Final = 8
MOST_REJECTIONS: Final = 6
"""A notice that a receiver rejects so often is dropped."""
KEPT_SECONDS: Final = 3 * 86_400.0
"""A notice that could not be delivered for so long is dropped."""
LONGEST_WAIT_SECONDS: Final = 60.0

logger = logging.getLogger(__name__)


class QuietNow(Exception):
    """Nothing may be told at this hour."""


class Attempts:
    """The tries of one rule. Only AT_ONCE are under way at any time; a notice that waits for its next try is not."""

    def __init__(self, name: str, rule: Rule, sender: Sender, clock: Clock, metrics: Metrics) -> None:
        self._name, self._rule = name, rule
        self._sender, self._clock, self._metrics = sender, clock, metrics
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def send(self, notice: Notice, marked: float) -> None:
        """Send a notice of what was marked at a time until it is delivered or dropped. Raises QuietNow."""
        patience = Patience(marked + KEPT_SECONDS, self._clock)
        tries = AsyncRetrying(
            sleep=self._clock.sleep,
            wait=wait_exponential_jitter(initial=1.0, max=LONGEST_WAIT_SECONDS, jitter=1.0),
            retry=retry_if_exception_type(NotDelivered),
            stop=patience.ends,
            before_sleep=self._note_failure,
            reraise=True,
        )
        try:
            patience.check()
            await tries(self._try, notice)
        except NotDelivered as error:
            outcome = "rejected" if isinstance(error, Rejected) else "expired"
            self._metrics.notices[outcome].inc()
            about = {"rule": self._name, "stream": notice.data.stream}
            logger.warning("rule %s: a notice is dropped (%s): %s", self._name, outcome, error, extra=about)
        else:
            self._metrics.notices["sent"].inc()

    async def _try(self, notice: Notice) -> None:
        async with self._turns:
            now = self._clock.now()
            if self._rule.is_quiet(now):
                raise QuietNow
            await self._sender.send(post_of(self._rule, notice, now))

    def _note_failure(self, state: RetryCallState) -> None:
        self._metrics.notice_failures.inc()
        if state.attempt_number == 1 and state.outcome is not None:
            logger.warning(
                "rule %s: %s does not take notices: %s", self._name, self._rule.host, state.outcome.exception()
            )


class Patience:
    """When to give a notice up."""

    def __init__(self, until: float, clock: Clock) -> None:
        self._until, self._clock = until, clock
        self._rejections = 0

    def check(self) -> None:
        """Raise NotDelivered for a notice that is too old for any try."""
        if self._clock.now() >= self._until:
            raise NotDelivered("it is too old")

    def ends(self, state: RetryCallState) -> bool:
        """Tell whether a failure was the last."""
        assert state.outcome is not None
        self._rejections += isinstance(state.outcome.exception(), Rejected)
        return self._rejections >= MOST_REJECTIONS or self._clock.now() >= self._until
