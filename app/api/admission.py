"""Which requests are let in by what their key may use."""

from functools import partial

from starlette.requests import Request

from app.api.service import Service, service_of
from app.security import Grant, Scope, Unauthenticated
from app.streams.allowance import UNLIMITED, Allowance


async def admit(request: Request) -> None:
    """Count a request of a key that may send only so many. Raises RateLimited."""
    service = service_of(request)
    if not service.keys.counts_requests:
        return
    try:
        held = service.keys.held_by(request)
    except Unauthenticated:
        return  # the route says so, if it asks for a key
    for grant in held or ():
        await service.quotas.charge(grant, "requests", 1)


def permitted_allowance(request: Request, scope: Scope, stream: str) -> Allowance:
    """Say how much a request may use, if its key may do this."""
    service = service_of(request)
    return allowance_of(service, service.keys.permit(request, scope, stream))


def permitted_samples(request: Request, scope: Scope, stream: str) -> Allowance:
    """Say how much a request may use that brings samples. Raises RateLimited, before its body is read, if none."""
    service = service_of(request)
    grant = service.keys.permit(request, scope, stream)
    if grant is not None:
        service.quotas.refuse_closed(grant, "samples")
    return allowance_of(service, grant)


def allowance_of(service: Service, grant: Grant | None) -> Allowance:
    """Say how much a key may use."""
    if grant is None or not grant.has_limits:
        return UNLIMITED
    pay, keep = partial(service.quotas.charge, grant, "samples"), partial(service.kept.keep, grant)
    return Allowance(grant.bounds, pay, keep)
