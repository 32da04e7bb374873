"""What all streams of this process work with."""

from dataclasses import dataclass

from app.metrics import Metrics
from app.settings import Settings
from app.storage.base import Store
from app.streams.clock import Clock
from app.streams.leasing import Leases
from app.streams.listening import Listeners
from app.streams.troubles import Troubles


@dataclass(frozen=True, slots=True)
class Worker:
    """The process as its streams see it."""

    store: Store
    settings: Settings
    clock: Clock
    metrics: Metrics
    leases: Leases
    troubles: Troubles
    listeners: Listeners
