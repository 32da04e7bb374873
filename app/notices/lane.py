"""Tells one rule's notices: those of one stream in order, those of several at once."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from typing import Final

from app.metrics import Metrics
from app.notices.attempts import LONGEST_WAIT_SECONDS, Attempts, QuietNow
from app.notices.due import concerns, kinds_due, told_incident
from app.notices.notice import Kind, Notice, notice_of
from app.notices.outbox import Outbox
from app.notices.posts import RESEND_SECONDS, alerts
from app.notices.rule import Rule
from app.notices.sender import NotDelivered, Sender
from app.storage import IncidentChange, Store
from app.streams.errors import StoreError
from app.streams.log.incidents import Incident, read_incident
from app.streams.open.clock import Clock

MOST_IN_WORK: Final = 64
"""So many streams of a rule may wait for their next try; others are told all the while."""
STORE_SECONDS: Final = 1.0
STORE_TOLD_SECONDS: Final = 60.0
MOST_REMEMBERED: Final = 10_000
ALERTS_AT_ONCE: Final = 100

logger = logging.getLogger(__name__)


class Lane:
    """Delivers what waits for a rule, and tells an Alertmanager again of what is open."""

    def __init__(self, name: str, rule: Rule, store: Store, sender: Sender, clock: Clock, metrics: Metrics, page: str):
        self.name, self.rule = name, rule
        self._store, self._outbox, self._sender, self._clock = store, Outbox(store), sender, clock
        self._attempts, self._page = Attempts(name, rule, sender, clock, metrics), page
        self._in_work: dict[str, asyncio.Task[None]] = {}
        self._left: set[str] = set()
        """Streams of which more waits than their tasks know."""
        # the changes of an incident that has ended and is told may still wait: they must not tell it twice
        self._ended: dict[tuple[str, int, int], None] = {}
        self._store_told_at = float("-inf")
        self._look_at = clock.monotonic()
        self.more = asyncio.Event()
        """Set when more has come into the lane."""

    async def run(self) -> None:
        """Deliver, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    await self.begin(group)
                    await self.look_again()
                except StoreError as error:
                    self.more.set()
                    await self._wait_for_store(error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(RESEND_SECONDS / 4):
                        await self.more.wait()
                self.more.clear()

    async def begin(self, group: asyncio.TaskGroup) -> None:
        """Look once at all that waits, and start a task for each stream that has none; what is quiet waits."""
        after, begun = None, set()
        self._left.clear()
        while not self.rule.is_quiet(self._clock.now()) and (page := await self._outbox.waiting(self.name, after)):
            after = page[-1]
            for stream, changes in by_stream(page):
                if stream in begun or stream in self._in_work:
                    self._left.add(stream)  # what waits behind is told after it
                else:
                    await self._have_room()
                    self._in_work[stream] = group.create_task(self._tell_in_order(stream, changes))
                begun.add(stream)
            await self.look_again()
        if self._left - self._in_work.keys():
            self.more.set()

    async def _have_room(self) -> None:
        while len(self._in_work) >= MOST_IN_WORK:
            tasks = self._in_work.values()
            await asyncio.wait(tasks, timeout=RESEND_SECONDS / 4, return_when=asyncio.FIRST_COMPLETED)
            await self.look_again()

    async def _tell_in_order(self, stream: str, changes: Sequence[IncidentChange]) -> None:
        """Tell what waits of a stream. A fault leaves the rest of it for later, and harms no other stream."""
        try:
            for change in changes:
                await self._tell(change)
        except QuietNow:
            pass
        except StoreError as error:
            self._left.add(stream)
            await self._wait_for_store(error)
        except Exception:
            self._left.add(stream)
            logger.exception("rule %s: notices wait", self.name, extra={"rule": self.name, "stream": stream})
            await self._clock.sleep(LONGEST_WAIT_SECONDS)
        finally:
            del self._in_work[stream]
            if stream in self._left:
                self.more.set()

    async def _wait_for_store(self, error: StoreError) -> None:
        if self._clock.monotonic() >= self._store_told_at + STORE_TOLD_SECONDS:
            self._store_told_at = self._clock.monotonic()
            logger.warning("rule %s: the store fails: %s", self.name, error)
        await self._clock.sleep(STORE_SECONDS)

    async def _tell(self, change: IncidentChange) -> None:
        incident = await self._read(change)
        if incident is None or not self.rule.fits(change.stream) or self._is_over(change.stream, incident):
            await self._outbox.settle(self.name, change, incident, is_open=False)
            return
        is_known = await self._outbox.is_known(self.name, change.stream, incident)
        is_ours = is_known or concerns(self.rule, incident, change)
        for kind in kinds_due(self.rule, incident, is_known=is_known) if is_ours else ():
            await self._attempts.send(self._notice(change.stream, incident, kind), change.marked / 1000)
        if incident.ended and is_ours:
            self._remember(change.stream, incident)
        await self._outbox.settle(self.name, change, incident, is_open=is_ours and not incident.ended)

    def _is_over(self, stream: str, incident: Incident) -> bool:
        return bool(incident.ended) and (stream, incident.seq, incident.opened) in self._ended

    def _remember(self, stream: str, incident: Incident) -> None:
        self._ended[stream, incident.seq, incident.opened] = None
        if len(self._ended) > MOST_REMEMBERED:
            del self._ended[next(iter(self._ended))]

    async def _read(self, change: IncidentChange) -> Incident | None:
        found = await self._store.find_incidents(change.stream, [change.seq])
        return read_incident(found[change.seq]) if change.seq in found else None

    def _notice(self, stream: str, incident: Incident, kind: Kind) -> Notice:
        return notice_of(self.name, kind, told_incident(stream, incident, self._page))

    async def look_again(self) -> None:
        """Look at the open incidents, if it is time: tell an Alertmanager of them again, or it takes them for over."""
        if self._clock.monotonic() < self._look_at:
            return
        self._look_at = self._clock.monotonic() + RESEND_SECONDS
        after = None
        while page := await self._outbox.open_ones(self.name, after):
            after = page[-1]
            for begin in range(0, len(page), ALERTS_AT_ONCE):
                await self._look_at_some(page[begin : begin + ALERTS_AT_ONCE])

    async def _look_at_some(self, known: Sequence[IncidentChange]) -> None:
        found = {change: await self._read(change) for change in known}
        present = {change: one for change, one in found.items() if one is not None and self._is_about(change, one)}
        await self._outbox.forget(self.name, found.keys() - present.keys())  # their alerts end by themselves
        if self.rule.target == "alertmanager":
            await self._send_again(present)

    def _is_about(self, known: IncidentChange, incident: Incident) -> bool:
        """Tell whether an incident is the one that was known: its stream may have begun anew, or the rule changed."""
        return incident.opened == known.marked and self.rule.fits(known.stream)

    async def _send_again(self, present: Mapping[IncidentChange, Incident]) -> None:
        notices = [
            self._notice(change.stream, incident, "incident.opened")
            for change, incident in present.items()
            if not incident.ended
        ]
        if notices:
            with suppress(NotDelivered):  # the next round is soon
                await self._sender.send(alerts(self.rule, notices, self._clock.now()))


def by_stream(page: Iterable[IncidentChange]) -> list[tuple[str, list[IncidentChange]]]:
    """Group changes by their streams, in order."""
    stream_of = attrgetter("stream")
    return [(stream, list(changes)) for stream, changes in groupby(sorted(page, key=stream_of), stream_of)]
