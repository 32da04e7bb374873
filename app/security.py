"""API keys: who may do what on which streams."""

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from starlette.requests import Request

from app.logs.context import note

KEY = re.compile(r"[!-+\--9;-~]+")  # printable ASCII without blank, comma and colon
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

    def covers(self, stream: str) -> bool:
        """Tell whether a stream is one of those the entry names."""
        return stream.startswith(self.streams[:-1]) if self.streams.endswith("*") else stream == self.streams


class KeyRing:
    """All keys of the service; an empty ring asks for none."""

    def __init__(self, grants: Iterable[Grant]) -> None:
        self._grants = tuple(grants)

    @classmethod
    def parse(cls, text: str) -> "KeyRing":
        """Read `key[:scopes[:streams]]` entries: scopes joined by +, streams one id or a prefix and *."""
        entries = text.split(",") if text.strip() else []
        return cls(parse_grant(entry.strip(), place) for place, entry in enumerate(entries, start=1))

    def held_by(self, request: Request) -> tuple[Grant, ...] | None:
        """Give the entries of a request's key (None: no key is asked for); Unauthenticated without one."""
        if not self._grants:
            return None
        digest = digest_of(carried_key(request))
        # every entry is compared, so that the time tells nothing of which one came near
        found = tuple(grant for grant in self._grants if hmac.compare_digest(grant.digest, digest))
        if not found:
            raise Unauthenticated
        note(key=found[0].place)
        return found

    def permit(self, request: Request, scope: Scope, stream: str | None = None) -> None:
        """Raise CrossSite, Unauthenticated or Forbidden unless the request may do this."""
        refuse_cross_site(request, scope)
        note(stream=stream)
        held = self.held_by(request)
        if held is not None and not any(grant.allows(scope, stream) for grant in held):
            raise Forbidden(scope, stream)

    def visible(self, request: Request, streams: Iterable[str]) -> list[str]:
        """Keep the streams that the request may read."""
        held = self.held_by(request)
        return [stream for stream in streams if held is None or any(grant.allows(Scope.READ, stream) for grant in held)]


def refuse_cross_site(request: Request, scope: Scope) -> None:
    """Raise CrossSite for a change from a page of another site: an open service trusts whoever reaches it."""
    if scope is not Scope.READ and request.headers.get("sec-fetch-site") == "cross-site":
        raise CrossSite


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
