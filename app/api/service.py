"""What every route works with."""

from dataclasses import dataclass, field
from typing import cast

from starlette.requests import Request

from app.metrics import Metrics
from app.notices.catalog import Rules
from app.notices.outbox import Outbox
from app.notices.sender import Sender
from app.security import KeptBytes, KeyRing, KeyWatch, Quotas, Scope
from app.settings import Settings
from app.sources.catalog import Sources
from app.streams.ids import checked_stream_id
from app.streams.maintenance.checker import Checker
from app.streams.maintenance.store_opening import StoreOpening
from app.streams.maintenance.store_probe import StoreProbe
from app.streams.open.registry import Registry
from app.streams.open.tasks import Tasks
from app.streams.views.band import Bands
from app.streams.views.catalog import Catalog
from app.streams.views.grids import GridCache
from app.templates import Templates
from app.windows import Windows
from app.workers.following import Following
from app.workers.forwarder import Forwarder
from app.workers.signatures import Signatures


@dataclass(slots=True)
class Service:
    """The concrete objects of one app."""

    settings: Settings
    keys: KeyRing
    key_watch: KeyWatch | None
    quotas: Quotas
    kept: KeptBytes
    store_opening: StoreOpening
    store_probe: StoreProbe
    registry: Registry
    catalog: Catalog
    forwarder: Forwarder
    following: Following
    signatures: Signatures
    sources: Sources
    rules: Rules
    templates: Templates
    windows: Windows
    outbox: Outbox
    sender: Sender
    checker: Checker
    metrics: Metrics
    tasks: Tasks = field(default_factory=Tasks)
    grids: GridCache = field(default_factory=GridCache)
    bands: Bands = field(default_factory=Bands)
    is_stopping: bool = False

    def stop_soon(self) -> None:
        """Become unready, and end all event streams."""
        self.is_stopping = True
        self.registry.worker.subscriptions.notify_all()


def service_of(request: Request) -> Service:
    """Give the objects of the app that a request came to."""
    return cast(Service, request.app.state.service)


def permitted_path_stream(request: Request, scope: Scope) -> str:
    """Give the stream that the path names, if the request's key may do this to it."""
    stream = checked_stream_id(request.path_params["stream"])
    service_of(request).keys.permit(request, scope, stream)
    return stream
