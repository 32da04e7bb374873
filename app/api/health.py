"""/livez, /readyz and /metrics: for those who watch over the process; no key is asked for."""

import asyncio

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.requests import Request
from starlette.responses import Response

from app.api.routing import JSON, Route, answer, operation, ref
from app.api.schemas import Health
from app.api.service import service_of
from app.storage.base import StoreUnavailable

CHECK_SECONDS = 2.0


async def get_livez(_: Request) -> Response:
    """Say that the process answers; nothing else is looked at."""
    return answer(Health("alive"))


async def get_readyz(request: Request) -> Response:
    """Say whether to send requests here: also while the store is down, since reads go on; not while shutting down."""
    service = service_of(request)
    if service.is_stopping:
        return answer(Health("stopping", reason="the service is shutting down"), 503)
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return answer(Health("ready", "available", warnings=await service.store.check()))
    except TimeoutError:
        return answer(Health("ready", "unavailable", f"no answer within {CHECK_SECONDS:g} seconds"))
    except StoreUnavailable as error:
        return answer(Health("ready", "unavailable", error.reason))


async def get_metrics(request: Request) -> Response:
    """Give all metrics: they name streams, so not to a page whose name was led here."""
    service = service_of(request)
    service.keys.refuse_other_host(request)
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_PLAIN_0_0_4)


ROUTES = [
    Route(
        "GET", "/livez", get_livez, summary="Is the process alive?", operation=operation(answer={JSON: ref("Health")})
    ),
    Route(
        "GET",
        "/readyz",
        get_readyz,
        summary="Should requests come here?",
        operation=operation(answer={JSON: ref("Health")}),
    ),
    Route(
        "GET",
        "/metrics",
        get_metrics,
        summary="Get metrics for Prometheus",
        operation=operation(answer={"text/plain": {"type": "string"}}),
    ),
]
