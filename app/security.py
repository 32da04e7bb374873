"""API keys: who may do what on which streams."""

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from time import time

from starlette.requests import Request

from app.hosts import ANY_HOST, Hosts
from app.logs.context import note
from app.tickets import csrf_token, holds, issue

KEY = re.compile(r"[!-+\--9;-~]+")  # printable ASCII without blank, comma and colon
COOKIE = "itan_session"
CSRF_HEADER = "X-CSRF-Token"
STREAMS = re.compile(r"[A-Za-z0-9._:-]{0,128}\*?")


class Scope(StrEnum):
    """What a key may do; admin includes the others."""

    READ = "read"
    OBSERVE = "observe"
    LABEL = "label"
    ADMIN = "admin"


class InvalidKeys(ValueError):
    """ITAN_API_KEYS cannot be read; the message names the entry by its place, never by its text."""

    def __init__(self, place: int, reason: str) -> None:
        super().__init__(f"ITAN_API_KEYS, entry {place}: {reason}")


class Unauthenticated(Exception):
    """No key, or one that nobody gave out."""

    def __init__(self) -> None:
        super().__init__("a valid key is needed, as Authorization: Bearer <key> or as X-API-Key: <key>")


class CrossSite(Exception):
    """A change that a web page of another site asks a browser for."""

    def __init__(self) -> None:
        super().__init__("a page of another site may not change anything here (Sec-Fetch-Site: cross-site)")


class CsrfTokenNeeded(Exception):
    """A change that comes with the page's cookie alone, which a browser sends whoever asks it to."""

    def __init__(self) -> None:
        super().__init__(f"a change made with the cookie needs the header {CSRF_HEADER} as /session gives it")


class Forbidden(Exception):
    """A good key that may not do this."""

    def __init__(self, scope: Scope, stream: str | None) -> None:
        self.scope = scope
        self.stream = stream
        super().__init__(f"the key lacks scope {scope.value!r}" + ("" if stream is None else f" on stream {stream!r}"))


@dataclass(frozen=True, slots=True)
class Grant:
    """One entry of ITAN_API_KEYS; only the key's digest is kept."""

    digest: bytes = field(repr=False)
    scopes: frozenset[Scope]
    streams: str
    place: int

    def allows(self, scope: Scope, stream: str | None) -> bool:
        """Tell whether the entry covers a scope on a stream (None: on no stream in particular)."""
        return (scope in self.scopes or Scope.ADMIN in self.scopes) and (stream is None or self.covers(stream))

    def allowed(self) -> frozenset[Scope]:
        """Give the scopes that the entry has, admin with all that it includes."""
        return frozenset(Scope) if Scope.ADMIN in self.scopes else self.scopes

    def covers(self, stream: str) -> bool:
        """Tell whether a stream is one of those the entry names."""
        return stream.startswith(self.streams[:-1]) if self.streams.endswith("*") else stream == self.streams


class KeyRing:
    """All keys of the service; an empty ring asks for none."""

    def __init__(self, grants: Iterable[Grant], now: Callable[[], float] = time, hosts: Hosts = ANY_HOST) -> None:
        self._grants = tuple(grants)
        self._now = now
        self._hosts = hosts

    @classmethod
    def parse(cls, text: str, now: Callable[[], float] = time, hosts: Hosts = ANY_HOST) -> "KeyRing":
        """Read `key[:scopes[:streams]]` entries: scopes joined by +, streams one id or a prefix and *."""
        entries = text.split(",") if text.strip() else []
        return cls((parse_grant(entry.strip(), place) for place, entry in enumerate(entries, start=1)), now, hosts)

    @property
    def are_required(self) -> bool:
        """Tell whether a key is asked for."""
        return bool(self._grants)

    def held_by(self, request: Request) -> tuple[Grant, ...] | None:
        """Give the entries of a request's key (None: no key is asked for); Unauthenticated without one."""
        if not self._grants:
            return None
        found = self.opened_by(carried_key(request)) if carries_key(request) else self.signed_in(request)
        if not found:
            raise Unauthenticated
        note(key=found[0].place)
        return found

    def opened_by(self, key: str) -> tuple[Grant, ...]:
        """Give the entries of a key."""
        digest = digest_of(key)
        # every entry is compared, so that the time tells nothing of which one came near
        return tuple(grant for grant in self._grants if hmac.compare_digest(grant.digest, digest))

    def ticket(self, held: tuple[Grant, ...], seconds: int) -> str:
        """Give a ticket for a key that has been shown, good for so long."""
        return issue(held[0].digest, int(self._now()) + seconds)

    def signed_in(self, request: Request) -> tuple[Grant, ...]:
        """Give the entries of the key that the page's cookie stands for."""
        ticket, now = request.cookies.get(COOKIE, ""), self._now()
        return tuple(grant for grant in self._grants if holds(ticket, grant.digest, now))

    def permit(self, request: Request, scope: Scope, stream: str | None = None) -> None:
        """Raise the reason why a request may not do this, if there is one."""
        self.refuse_other_host(request)
        refuse_cross_site(request, scope)
        note(stream=stream)
        held = self.held_by(request)
        if held is None:
            return
        if scope is not Scope.READ and not carries_key(request):
            refuse_forged(request, held)
        if not any(grant.allows(scope, stream) for grant in held):
            raise Forbidden(scope, stream)

    def refuse_other_host(self, request: Request) -> None:
        """Raise UnknownHost for a request that bears a name which is not the service's."""
        self._hosts.check(request.headers.get("host", ""))

    def visible(self, request: Request, streams: Iterable[str]) -> list[str]:
        """Keep the streams that the request may read."""
        held = self.held_by(request)
        return [stream for stream in streams if held is None or any(grant.allows(Scope.READ, stream) for grant in held)]


def refuse_cross_site(request: Request, scope: Scope) -> None:
    """Raise CrossSite for a change from a page of another site: an open service trusts whoever reaches it."""
    if scope is not Scope.READ and request.headers.get("sec-fetch-site") == "cross-site":
        raise CrossSite


def refuse_forged(request: Request, held: tuple[Grant, ...]) -> None:
    """Raise CsrfTokenNeeded unless a page of ours sent the request, for the key that is signed in."""
    token = csrf_token(request.cookies[COOKIE], held[0].digest)
    if not hmac.compare_digest(request.headers.get(CSRF_HEADER, "").encode(), token.encode()):
        raise CsrfTokenNeeded


def carries_key(request: Request) -> bool:
    """Tell whether a request names a key: it is not looked for a cookie then."""
    return "authorization" in request.headers or "x-api-key" in request.headers


def carried_key(request: Request) -> str:
    """Take the key out of `Authorization: Bearer <key>` or `X-API-Key: <key>`."""
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if kind.lower() == "bearer" else request.headers.get("x-api-key", "")


def digest_of(key: str) -> bytes:
    """Hash a key, so that all comparisons are of one length."""
    return hashlib.sha256(key.encode()).digest()


def parse_grant(entry: str, place: int) -> Grant:
    """Read one entry; a stream pattern may itself hold colons."""
    key, *rest = entry.split(":", 2)
    if not KEY.fullmatch(key):
        raise InvalidKeys(place, "a key is one or more printable ASCII characters without blank, comma and colon")
    streams = rest[1] if len(rest) > 1 else "*"
    if not streams or not STREAMS.fullmatch(streams):
        raise InvalidKeys(place, "the streams are one stream id, or a prefix followed by *")
    return Grant(digest_of(key), parse_scopes(rest[0], place) if rest else frozenset(Scope), streams, place)


def parse_scopes(text: str, place: int) -> frozenset[Scope]:
    """Read scopes joined by +."""
    try:
        return frozenset(Scope(name) for name in text.split("+"))
    except ValueError:
        raise InvalidKeys(place, f"scopes are {', '.join(Scope)}, joined by +") from None
