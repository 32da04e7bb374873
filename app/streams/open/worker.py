"""What all streams of this process work with."""

from dataclasses import dataclass

from app.metrics import Metrics
from app.settings import Settings
from app.storage import Store
from app.streams.open.clock import Clock
from app.streams.open.health import StreamHealth
from app.streams.open.leases import Leases
from app.streams.open.subscriptions import Subscriptions


@dataclass(frozen=True, slots=True)
class Worker:
    """The process as its streams see it."""

    store: Store
    settings: Settings
    clock: Clock
    metrics: Metrics
    leases: Leases
    health: StreamHealth
    subscriptions: Subscriptions
