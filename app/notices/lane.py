"""Tells one rule's notices: those of one stream in order, those of several at once."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from typing import Final

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential_jitter

from app.metrics import Metrics
from app.notices.due import kinds_due, told_incident
from app.notices.notice import Kind, Notice, notice_of
from app.notices.outbox import Outbox
from app.notices.posts import RESEND_SECONDS, Post, alerts, post_of
from app.notices.rule import Rule
from app.notices.sender import NotDelivered, Rejected, Sender
from app.storage import IncidentChange, Store
from app.streams.errors import StoreError
from app.streams.log.incidents import Incident, read_incident
from app.streams.open.clock import Clock

AT_ONCE: Final = 8
MOST_REJECTIONS: Final = 6
"""A notice that a receiver rejects so often is dropped."""
KEPT_SECONDS: Final = 3 * 86_400.0
"""A notice that could not be delivered for so long is dropped."""
LONGEST_WAIT_SECONDS: Final = 60.0
MOST_REMEMBERED: Final = 10_000
ALERTS_AT_ONCE: Final = 100

logger = logging.getLogger(__name__)


class Lane:
    """Delivers what waits for a rule, and tells an Alertmanager again of what is open."""

    def __init__(self, name: str, rule: Rule, store: Store, sender: Sender, clock: Clock, metrics: Metrics, page: str):
        self.name, self.rule = name, rule
        self._store, self._outbox, self._sender, self._clock = store, Outbox(store), sender, clock
        self._metrics, self._page = metrics, page
        self._turns = asyncio.Semaphore(AT_ONCE)
        # the changes of an incident that has ended and is told may still wait: they must not tell it twice
        self._ended: dict[tuple[str, int], None] = {}
        self._resend_at = clock.monotonic()
        self.more = asyncio.Event()
        """Set when more has come into the lane."""

    async def run(self) -> None:
        """Deliver, until cancelled."""
        while True:
            try:
                await self.deliver()
                await self.send_again()
            except StoreError as error:
                logger.warning("rule %s: the store fails: %s", self.name, error)
                await self._clock.sleep(1.0)
            with suppress(TimeoutError):
                async with asyncio.timeout(RESEND_SECONDS / 4):
                    await self.more.wait()
            self.more.clear()

    async def deliver(self) -> None:
        """Tell all that waits, unless it is quiet; what waits for the morning is told then."""
        while not self.rule.is_quiet(self._clock.now()) and (page := await self._outbox.waiting(self.name)):
            by_stream = groupby(sorted(page, key=attrgetter("stream")), attrgetter("stream"))
            async with asyncio.TaskGroup() as group:
                for _, changes in by_stream:
                    group.create_task(self._tell_in_order(list(changes)))
            await self.send_again()

    async def _tell_in_order(self, changes: Sequence[IncidentChange]) -> None:
        async with self._turns:
            for change in changes:
                await self._tell(change)

    async def _tell(self, change: IncidentChange) -> None:
        incident = await self._read(change)
        if incident is None or (incident.ended and (change.stream, change.seq) in self._ended):
            await self._outbox.settle(self.name, change, is_told=False)
            return
        is_told = await self._outbox.is_told(self.name, change)
        kinds = kinds_due(self.rule, incident, change, is_told=is_told)
        for kind in kinds:
            await self._send(self._notice(change.stream, incident, kind), change)
        if incident.ended and (is_told or kinds):
            self._remember(change)
        await self._outbox.settle(self.name, change, is_told=not incident.ended and (is_told or bool(kinds)))

    def _remember(self, change: IncidentChange) -> None:
        self._ended[change.stream, change.seq] = None
        if len(self._ended) > MOST_REMEMBERED:
            del self._ended[next(iter(self._ended))]

    async def _read(self, change: IncidentChange) -> Incident | None:
        found = await self._store.find_incidents(change.stream, [change.seq])
        return read_incident(found[change.seq]) if change.seq in found else None

    def _notice(self, stream: str, incident: Incident, kind: Kind) -> Notice:
        return notice_of(self.name, kind, told_incident(stream, incident, self._page))

    async def _send(self, notice: Notice, change: IncidentChange) -> None:
        """Send a notice until it is delivered, or there is no sense in it any more."""
        patience = Patience(change.marked / 1000 + KEPT_SECONDS, self._clock)
        tries = AsyncRetrying(
            sleep=self._clock.sleep,
            wait=wait_exponential_jitter(initial=1.0, max=LONGEST_WAIT_SECONDS, jitter=1.0),
            retry=retry_if_exception_type(NotDelivered),
            stop=patience.ends,
            before_sleep=self._note_failure,
            reraise=True,
        )
        try:
            await tries(self._try, notice)
        except NotDelivered as error:
            outcome = "rejected" if isinstance(error, Rejected) else "expired"
            self._metrics.notices[outcome].inc()
            about = {"rule": self.name, "stream": notice.data.stream}
            logger.warning("rule %s: a notice is dropped (%s): %s", self.name, outcome, error, extra=about)
        else:
            self._metrics.notices["sent"].inc()

    async def _try(self, notice: Notice) -> None:
        await self._sender.send(post_of(self.rule, notice, self._clock.now()))

    def _note_failure(self, state: RetryCallState) -> None:
        self._metrics.notice_failures.inc()
        if state.attempt_number == 1 and state.outcome is not None:
            logger.warning(
                "rule %s: %s does not take notices: %s", self.name, self.rule.host, state.outcome.exception()
            )

    async def send_again(self) -> None:
        """Tell an Alertmanager again of the incidents that are open, if it is time: else it takes them for over."""
        if self.rule.target != "alertmanager" or self._clock.monotonic() < self._resend_at:
            return
        self._resend_at = self._clock.monotonic() + RESEND_SECONDS
        after = None
        while page := await self._outbox.told(self.name, after):
            after = page[-1]
            for begin in range(0, len(page), ALERTS_AT_ONCE):
                await self._send_open(page[begin : begin + ALERTS_AT_ONCE])

    async def _send_open(self, told: Sequence[IncidentChange]) -> None:
        found = [(change, await self._read(change)) for change in told]
        for change, incident in found:
            if incident is None:  # its stream is gone, or began anew: the alert ends by itself
                await self._outbox.settle(self.name, change, is_told=False)
        notices = [
            self._notice(change.stream, incident, "incident.opened")
            for change, incident in found
            if incident is not None and not incident.ended
        ]
        with suppress(NotDelivered):  # the next round is soon
            await self._sender.send(self._alerts(notices))

    def _alerts(self, notices: Sequence[Notice]) -> Post:
        return alerts(self.rule, notices, self._clock.now())


class Patience:
    """When to give a notice up."""

    def __init__(self, until: float, clock: Clock) -> None:
        self._until, self._clock = until, clock
        self._rejections = 0

    def ends(self, state: RetryCallState) -> bool:
        """Tell whether a failure was the last."""
        assert state.outcome is not None
        self._rejections += isinstance(state.outcome.exception(), Rejected)
        return self._rejections >= MOST_REJECTIONS or self._clock.now() >= self._until
