"""Admits requests by the quotas of their keys."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from starlette.requests import Request

from app.api.service import Service, service_of
from app.security import (
    BeyondRate,
    Forbidden,
    Grant,
    Grants,
    KeyFull,
    RateLimited,
    Scope,
    Unauthenticated,
    allowing,
)
from app.streams.allowance import UNLIMITED, Allowance
from app.streams.batches.records import Record
from app.streams.changes.ingest import Outcomes


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


def permitted_grants(request: Request, scope: Scope) -> Grants | None:
    """Give the entries of the key of a request that names its streams only in its body (None: no key is needed).

    Raises Forbidden if none has the scope, RateLimited if none that has may send samples now.
    """
    service = service_of(request)
    held = service.keys.held_for(request, scope)
    if held is None:
        return None
    able = tuple(grant for grant in held if grant.allows(scope, None))
    if not able:
        raise Forbidden(scope, None)
    if len(able) == 1:
        service.quotas.refuse_closed(able[0], "samples")
    return able


async def admit_records(
    service: Service, held: Grants | None, by_stream: Mapping[str, Sequence[Record]], size_bytes: int, to: Outcomes
) -> dict[str, Allowance]:
    """Give the allowance of each stream that the key may observe; its entries pay for all their records at once."""
    found: dict[str, Allowance] = {}
    n_records = sum(map(len, by_stream.values()))
    for grant, streams in by_grant(held, by_stream, to):
        allowance = allowance_of(service, grant)
        records = [record for stream in streams for record in by_stream[stream]]
        try:
            await allowance.keep(size_bytes * len(records) // n_records)
            await allowance.pay(len(records))
        except (BeyondRate, KeyFull, RateLimited) as error:
            to.refuse(records, error)
        else:
            found |= dict.fromkeys(streams, Allowance(allowance.bounds))
    return found


def by_grant(
    held: Grants | None, by_stream: Mapping[str, Sequence[Record]], to: Outcomes
) -> Iterable[tuple[Grant | None, list[str]]]:
    """Group the streams by the entry that allows to observe them; refuse the records of the others."""
    if held is None:
        return [(None, list(by_stream))] if by_stream else []
    groups: dict[bytes | int | str, tuple[Grant | None, list[str]]] = {}
    for stream, records in by_stream.items():
        try:
            grant = allowing(held, Scope.OBSERVE, stream)
        except Forbidden as error:
            to.refuse(records, error)
        else:
            groups.setdefault(grant.name if grant else "", (grant, []))[1].append(stream)
    return groups.values()


def allowance_of(service: Service, grant: Grant | None) -> Allowance:
    """Give the allowance of a key."""
    if grant is None or not grant.has_limits:
        return UNLIMITED
    pay, keep = partial(service.quotas.charge, grant, "samples"), partial(service.kept.keep, grant)
    return Allowance(grant.bounds, pay, keep)
