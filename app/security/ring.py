"""Finds the key of a request, and what it allows."""

import hmac
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from time import time
from typing import TypeVar

from starlette.requests import Request

from app.hosts import ANY_HOST, Hosts
from app.logs.context import note
from app.security.errors import CSRF_HEADER, CrossSite, CsrfTokenNeeded, Forbidden, Unauthenticated
from app.security.grants import Grant, Scope, digest_of, parse_grants
from app.tickets import csrf_token, holds, issue, key_id, named_key

COOKIE = "itan_session"

Key = TypeVar("Key", bytes, str)
Grants = tuple[Grant, ...]
NOBODY: Grants = ()


class KeyRing:
    """All keys of the service; without keys, no request needs one."""

    def __init__(self, grants: Iterable[Grant], now: Callable[[], float] = time, hosts: Hosts = ANY_HOST) -> None:
        self._own = tuple(grants)
        self._now = now
        self._hosts = hosts
        self.are_required = bool(self._own)
        self._place(self._own)

    @classmethod
    def parse(cls, text: str, now: Callable[[], float] = time, hosts: Hosts = ANY_HOST) -> "KeyRing":
        """Read `key[:scopes[:streams]]` entries: scopes joined by +, streams one id or a prefix and *."""
        return cls(parse_grants(text), now, hosts)

    def take(self, of_file: Iterable[Grant]) -> None:
        """Replace the earlier keys of the file; from now on requests need a key."""
        self.are_required = True
        self._place((*self._own, *of_file))

    def _place(self, grants: Grants) -> None:
        self.grants = grants
        self.counts_requests = any(grant.requests for grant in grants)
        # found by digest: the time of a guess tells nothing of the keys, because nobody can choose a digest
        self._by_digest = grouped((grant.digest, grant) for grant in grants)
        self._by_id = grouped((key_id(grant.digest), grant) for grant in grants)

    def held_by(self, request: Request) -> Grants | None:
        """Give the entries of a request's key (None: no key is needed); Unauthenticated without a valid one."""
        if not self.are_required:
            return None
        found = self.opened_by(carried_key(request)) if carries_key(request) else self.signed_in(request)
        if not found:
            raise Unauthenticated
        note(key=found[0].name)
        return found

    def is_named_by(self, request: Request) -> bool:
        """Tell whether a request comes with a key, valid or not."""
        return carries_key(request) or COOKIE in request.cookies

    def opened_by(self, key: str) -> Grants:
        """Give the entries of a key."""
        return self._by_digest.get(digest_of(key), NOBODY)

    def ticket(self, held: Grants, seconds: int) -> str:
        """Give a ticket for a key, valid for so many seconds."""
        return issue(held[0].digest, int(self._now()) + seconds)

    def signed_in(self, request: Request) -> Grants:
        """Give the entries of the key that the page's cookie stands for."""
        ticket, now = request.cookies.get(COOKIE, ""), self._now()
        named = self._by_id.get(named_key(ticket), NOBODY)
        return tuple(grant for grant in named if holds(ticket, grant.digest, now))

    def permit(self, request: Request, scope: Scope, stream: str | None = None) -> Grant | None:
        """Give the entry that allows this request (None: no key is needed), or raise why none does."""
        note(stream=stream)
        return allowing(self.held_for(request, scope), scope, stream)

    def held_for(self, request: Request, scope: Scope) -> Grants | None:
        """Give the entries of a request's key (None: no key is needed), or raise why it may do nothing of a scope."""
        self.refuse_other_host(request)
        refuse_cross_site(request, scope)
        held = self.held_by(request)
        if held is None:
            return None
        if scope is not Scope.READ and not carries_key(request):
            refuse_forged(request, held)
        return held

    def permits(self, request: Request, scope: Scope, stream: str) -> bool:
        """Tell whether a request is allowed, a long one still: its key may be gone, or its cookie have expired."""
        try:
            allowing(self.held_for(request, scope), scope, stream)
        except (Unauthenticated, Forbidden):
            return False
        return True

    def refuse_other_host(self, request: Request) -> None:
        """Raise UnknownHost for a request to a host name that is not the service's."""
        self._hosts.check(request.headers.get("host", ""))

    def visible(self, request: Request, streams: Iterable[str]) -> list[str]:
        """Give those of the streams that the request may read."""
        held = self.held_by(request)
        return [stream for stream in streams if held is None or any(grant.allows(Scope.READ, stream) for grant in held)]


def allowing(held: Grants | None, scope: Scope, stream: str | None) -> Grant | None:
    """Give the first entry that allows a scope on a stream (None: no key is needed). Raises Forbidden."""
    if held is None:
        return None
    for grant in held:
        if grant.allows(scope, stream):
            return grant
    raise Forbidden(scope, stream)


def grouped(pairs: Iterable[tuple[Key, Grant]]) -> Mapping[Key, Grants]:
    """Group the grants by key."""
    groups: defaultdict[Key, list[Grant]] = defaultdict(list)
    for key, grant in pairs:
        groups[key].append(grant)
    return {key: tuple(grants) for key, grants in groups.items()}


def refuse_cross_site(request: Request, scope: Scope) -> None:
    """Raise CrossSite for a change from a page of another site: an open service trusts everybody who reaches it."""
    if scope is not Scope.READ and request.headers.get("sec-fetch-site") == "cross-site":
        raise CrossSite


def refuse_forged(request: Request, held: Grants) -> None:
    """Raise CsrfTokenNeeded unless our own page sent the request, for the key that is signed in."""
    token = csrf_token(request.cookies[COOKIE], held[0].digest)
    if not hmac.compare_digest(request.headers.get(CSRF_HEADER, "").encode(), token.encode()):
        raise CsrfTokenNeeded


def carries_key(request: Request) -> bool:
    """Tell whether a request has a key in its headers: then its cookie does not count."""
    return "authorization" in request.headers or "x-api-key" in request.headers


def carried_key(request: Request) -> str:
    """Give the key in `Authorization: Bearer <key>` or `X-API-Key: <key>`."""
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if kind.lower() == "bearer" else request.headers.get("x-api-key", "")
