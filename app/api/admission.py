"""Admits requests by the quotas of their keys."""

from functools import partial

from starlette.requests import Request

from app.api.service import Service, service_of
from app.security import Grant, Scope, Unauthenticated
from app.streams.allowance import UNLIMITED, Allowance


async def admit(request: Request) -> None:
    """Charge a request to its key's rate limit. Raises RateLimited."""
    service = service_of(request)
    if not service.keys.counts_requests:
        return
    try:
        held = service.keys.held_by(request)
    except Unauthenticated:
        return  # the route refuses it, if it needs a key
    for grant in held or ():
        await service.quotas.charge(grant, "requests", 1)


def permitted_allowance(request: Request, scope: Scope, stream: str) -> Allowance:
    """Give the allowance of a request whose key permits this."""
    service = service_of(request)
    return allowance_of(service, service.keys.permit(request, scope, stream))


def permitted_samples(request: Request, scope: Scope, stream: str) -> Allowance:
    """Give the allowance of a request with samples. Raises RateLimited, before its body is read, if there is none."""
    service = service_of(request)
    grant = service.keys.permit(request, scope, stream)
    if grant is not None:
        service.quotas.refuse_closed(grant, "samples")
    return allowance_of(service, grant)


def allowance_of(service: Service, grant: Grant | None) -> Allowance:
    """Give the allowance of a key."""
    if grant is None or not grant.has_limits:
        return UNLIMITED
    pay, keep = partial(service.quotas.charge, grant, "samples"), partial(service.kept.keep, grant)
    return Allowance(grant.bounds, pay, keep)
