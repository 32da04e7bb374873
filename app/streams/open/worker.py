"""What all streams of this process share."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self

from app.metrics import Metrics
from app.settings import Settings
from app.storage import Position, Store
from app.streams.log.archive.archive import Archive
from app.streams.log.archive.log import ArchivedLog
from app.streams.log.archive.tier import Archived, never
from app.streams.log.log import Log
from app.streams.open.clock import Clock
from app.streams.open.health import StreamHealth
from app.streams.open.leases import Leases
from app.streams.open.models import Defaults, Models
from app.streams.open.owners import owner_of, unique_name
from app.streams.open.schedule import ReadSchedule, nothing_planned
from app.streams.open.subscriptions import Subscriptions
from app.streams.open.unsaved import Unsaved

DefaultsOf = Callable[[str], Awaitable[Defaults]]
"""Gives what a new stream gets unless it is given something else."""


async def no_defaults(_: str) -> Defaults:
    """Give nothing."""
    return Defaults()


@dataclass(frozen=True, slots=True)
class Worker:
    """This process, as its streams see it."""

    store: Store
    settings: Settings
    clock: Clock
    metrics: Metrics
    leases: Leases
    health: StreamHealth
    subscriptions: Subscriptions
    unsaved: Unsaved
    models: Models
    defaults_of: DefaultsOf
    tells_of: Callable[[str], bool]
    """Whether anybody is told of the incidents of a stream: then their changes are marked in the store."""
    schedule: ReadSchedule
    archive: Archive | None = None
    to_archive: dict[str, None] = field(default_factory=dict)
    """Streams with entries to move to the archive, in the order in which that was found."""
    to_erase: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a stream was deleted that may have archived files."""
    to_compact: dict[str, tuple[Position, int]] = field(default_factory=dict)
    """Streams with a new snapshot: where it stands, and the oldest sample that matters."""

    def log(self, stream: str, is_writer: Callable[[], bool] = never) -> Log:
        """Give the log of a stream; its only writer may remember what is in the archive."""
        if self.archive is None:
            return Log(self.store, stream)
        return ArchivedLog(self.store, stream, archived=Archived(self.store, self.archive, stream, is_writer))

    @classmethod
    def of(
        cls,
        store: Store,
        settings: Settings,
        clock: Clock,
        metrics: Metrics,
        defaults_of: DefaultsOf = no_defaults,
        tells_of: Callable[[str], bool] = lambda _: False,
        schedule: ReadSchedule = nothing_planned,
        archive: Archive | None = None,
    ) -> Self:
        """Make a worker that has no stream yet."""
        owner = owner_of(settings.worker or unique_name(), settings.advertise_url)
        leases = Leases(store, owner, settings.lease_seconds, settings.handover_seconds, clock, metrics)
        health, subscriptions = StreamHealth(), Subscriptions(settings.max_watchers)
        models = Models(clock)
        return cls(
            store,
            settings,
            clock,
            metrics,
            leases,
            health,
            subscriptions,
            Unsaved(),
            models,
            defaults_of=defaults_of,
            tells_of=tells_of,
            schedule=schedule,
            archive=archive,
        )
