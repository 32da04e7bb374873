"""Delivers notices in the background: one worker at a time, a lane for each rule."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from app.notices.audience import Audience
from app.notices.catalog import Rules
from app.notices.lane import Lane
from app.notices.outbox import Outbox
from app.notices.rule import Rule
from app.notices.sender import Sender
from app.storage import IncidentChange
from app.streams.errors import LeaseHeld, StoreError
from app.streams.log.incidents import read_incident
from app.streams.maintenance.background import Background
from app.streams.open.worker import Worker

PAUSE_SECONDS: Final = 1.0
ROUNDS_PER_MEASURE: Final = 5
LEASE: Final = "!notices"
"""No stream can be called so."""
MOST_WAITING: Final = 100_000
"""So many changes may wait for a rule."""
EVENT_SECONDS: Final = 60.0
"""Redis may keep a mark a little before its event; after so long the event does not come any more."""

logger = logging.getLogger(__name__)


class Delivery(Background):
    """Puts changes into the lanes of the rules that they concern, and keeps the lanes running."""

    def __init__(self, worker: Worker, rules: Rules, audience: Audience, sender: Sender) -> None:
        self._worker, self._store, self._clock = worker, worker.store, worker.clock
        self._catalog, self._sender, self._outbox = rules, sender, Outbox(worker.store)
        self._audience = audience
        self._lanes: dict[str, tuple[Lane, asyncio.Task[None]]] = {}
        self._token: int | None = None
        self._renew_at = 0.0

    async def _run(self) -> None:
        rounds = 0
        while True:
            await self._clock.sleep(PAUSE_SECONDS)
            try:
                await self.work()
                if rounds % ROUNDS_PER_MEASURE == 0:
                    await self.measure()
                rounds += 1
            except StoreError as error:
                logger.warning("notices wait: %s", error)
            except Exception:
                logger.exception("notices wait")

    async def work(self) -> None:
        """Follow the rules, and put what is new into their lanes, if it is this worker's turn."""
        self._audience.rules = rules = await self._catalog.readable()
        if not await self.has_turn():
            await self._stop_lanes(list(self._lanes))
            return
        await self._follow(rules)
        await self.route()

    async def has_turn(self) -> bool:
        """Take or renew the lease on delivering. If two ever deliver, notices come twice, with the same ids."""
        now, seconds = self._clock.monotonic(), self._worker.settings.lease_seconds
        if self._token is not None and now < self._renew_at:
            return True
        try:
            self._token = await self._store.acquire(LEASE, self._worker.leases.owner, seconds)
        except LeaseHeld:
            self._token = None
        self._renew_at = now + seconds / 3
        return self._token is not None

    async def _follow(self, rules: Mapping[str, Rule]) -> None:
        """Start, restart and stop lanes as the rules say."""
        missing = [name for name in self._lanes if name not in rules]
        await self._stop_lanes([name for name, (lane, _) in self._lanes.items() if lane.rule != rules.get(name)])
        for name in missing:
            if not await self._catalog.is_kept(name):  # a rule that cannot be read may be mended
                await self._outbox.clear(name)
        self._note_failed()
        for name in rules.keys() - self._lanes.keys():
            lane = self.lane(name, rules[name])
            self._lanes[name] = lane, asyncio.get_running_loop().create_task(lane.run())

    def _note_failed(self) -> None:
        """Forget lanes that have ended by themselves, which only a fault of ours can make them do."""
        for name in [name for name, (_, task) in self._lanes.items() if task.done()]:
            _, task = self._lanes.pop(name)
            logger.error("rule %s: its notices stopped, and start again", name, exc_info=task.exception())

    def lane(self, name: str, rule: Rule) -> Lane:
        """Make the lane of a rule."""
        worker = self._worker
        return Lane(name, rule, self._store, self._sender, self._clock, worker.metrics, worker.settings.public_url)

    async def route(self) -> None:
        """Put what is new into the lanes of the rules that it concerns."""
        after = None
        while page := await self._outbox.untaken(after):
            after = page[-1]
            sure = {change: self._audience.of(change.stream) for change in page if await self._is_sure(change)}
            await self._outbox.take(sure)
            for name in {name for names in sure.values() for name in names} & self._lanes.keys():
                self._lanes[name][0].more.set()

    async def _is_sure(self, change: IncidentChange) -> bool:
        """Tell whether the event of a mark is in the log, or will never be."""
        found = await self._store.find_incidents(change.stream, [change.seq])
        if change.seq in found and read_incident(found[change.seq]).position >= change.position:
            return True
        return self._clock.now() - change.marked / 1000 > EVENT_SECONDS

    async def measure(self) -> None:
        """Note how much waits, and for how long; drop what is too much."""
        waiting, oldest, now = 0, 0.0, self._clock.now()
        for name in self._lanes:
            waiting += await self._bounded(name)
            for change in await self._outbox.waiting(name, limit=1):
                oldest = max(oldest, now - change.marked / 1000)
        self._worker.metrics.notices_waiting.set(waiting)
        self._worker.metrics.notices_oldest.set(oldest)

    async def _bounded(self, rule: str) -> int:
        """Count what waits for a rule, and drop the oldest of it beyond MOST_WAITING."""
        count = await self._outbox.count(rule)
        if (excess := count - MOST_WAITING) > 0:
            await self._outbox.drop_oldest(rule, excess)
            self._worker.metrics.notices["expired"].inc(excess)
            logger.warning("rule %s: %d changes are dropped: more than %d wait", rule, excess, MOST_WAITING)
        return min(count, MOST_WAITING)

    async def _stop_lanes(self, names: Iterable[str]) -> None:
        tasks = [self._lanes.pop(name)[1] for name in names]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def stop(self) -> None:
        """End; another worker may deliver at once."""
        await super().stop()
        await self._stop_lanes(list(self._lanes))
        if self._token is not None:
            with suppress(StoreError):
                await self._store.release({LEASE: self._token})
