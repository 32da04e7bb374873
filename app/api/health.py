"""/livez, /readyz and /metrics: for those who watch over the process."""

from starlette.requests import Request
from starlette.responses import Response

from app.api.routing import JSON, Answer, Operation, Route, answer, ref
from app.api.schemas.service import Health
from app.api.service import Service, service_of
from app.counts import counted
from app.metrics import CONTENT_TYPE, EVERYTHING, NO_NAMES, View
from app.security import Forbidden, Grant, Scope
from app.settings import WithoutKey
from app.streams.maintenance.store_probe import StoreStatus


async def get_livez(_: Request) -> Response:
    """Say that the process answers; nothing else is looked at."""
    return answer(Health("alive"))


async def get_readyz(request: Request) -> Response:
    """Say whether to send requests here.

    Not before the store was reached once, nor while shutting down. A store that is down later is only told, since reads
    go on; but if its files are not those that were opened, somebody must mend it.
    """
    service = service_of(request)
    if service.is_stopping:
        return answer(Health("stopping", reason="the service is shutting down"), 503)
    if service.store_opening.failure is not None:
        return answer(Health("starting", "unavailable", service.store_opening.failure), 503)
    health = health_of(await service.store_probe.status())
    if damaged := len(service.registry.worker.health.damaged):
        health.damaged_streams = damaged
        health.warnings.append(f"{counted(damaged, 'damaged stream')}: see `itan streams check all`")
    health.warnings += service.key_watch.warnings if service.key_watch else []
    return answer(health, 200 if health.status == "ready" else 503)


def health_of(store: StoreStatus) -> Health:
    """Give the health of the service by that of its store."""
    return Health("unready" if store.is_replaced else "ready", store.name, store.reason, warnings=store.warnings)


async def get_metrics(request: Request) -> Response:
    """Give all metrics: they name streams, so not to a page whose name was led here."""
    service = service_of(request)
    service.keys.refuse_other_host(request)
    if usage := await service.store_probe.usage():  # otherwise the last figures stay
        service.metrics.note_usage(usage)
    return Response(service.metrics.text(view_of(service, request)), media_type=CONTENT_TYPE)


def view_of(service: Service, request: Request) -> View:
    """Give the names that a reader of the metrics may know; Unauthenticated or Forbidden if not even the numbers."""
    without_key = service.settings.metrics_without_key
    if not service.keys.are_required or without_key is WithoutKey.ALL:
        return EVERYTHING
    if without_key is WithoutKey.NUMBERS and not service.keys.is_named_by(request):
        return NO_NAMES
    held = service.keys.held_by(request) or ()
    if without_key is WithoutKey.NOTHING and not any(map(reads_metrics, held)):
        raise Forbidden(Scope.METRICS, None)
    shows_keys = any(grant.allows(Scope.METRICS, None) and grant.streams == "*" for grant in held)
    return View(lambda stream: any(reads_metrics(grant, stream) for grant in held), shows_keys)


def reads_metrics(grant: Grant, stream: str | None = None) -> bool:
    """Tell whether a key shows the metrics, or those of a stream."""
    return grant.allows(Scope.METRICS, stream) or grant.allows(Scope.READ, stream)


SCRAPED = "# TYPE itan_open_streams gauge\nitan_open_streams 3.0\n"
HEALTH = Answer({JSON: ref("Health")})
ROUTES = [
    Route(
        "GET",
        "/livez",
        get_livez,
        Operation(
            id="get_liveness", tag="health", summary="Is the process alive?", answers={200: HEALTH}, reads_query=False
        ),
    ),
    Route(
        "GET",
        "/readyz",
        get_readyz,
        Operation(
            id="get_readiness",
            tag="health",
            summary="Should requests come here?",
            answers={200: HEALTH, 503: Answer({JSON: ref("Health")}, "Send requests elsewhere")},
            reads_query=False,
        ),
    ),
    Route(
        "GET",
        "/metrics",
        get_metrics,
        Operation(
            id="get_metrics",
            tag="health",
            summary="Get metrics for Prometheus",
            answers={200: Answer({"text/plain": {"type": "string", "examples": [SCRAPED]}})},
            description="`ITAN_METRICS_WITHOUT_KEY` says what it shows without a key.",
            scope=Scope.METRICS,
            with_key=False,
            reads_query=False,
        ),
    ),
]
