"""What a key may do, and how much of it: read from ITAN_API_KEYS and from lines of a file."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

import msgspec
from limits import RateLimitItem, parse
from msgspec import Meta

from app import patterns
from app.security.errors import InvalidKeys
from app.storage import NO_BOUNDS, Bound

KEY = re.compile(r"[!-+\--9;-~]+")  # printable ASCII without blank, comma and colon
NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
DIGEST = re.compile(r"[0-9a-f]{64}")
NAME_WANTED = "name begins with a letter, and has up to 64 letters, digits, dots, dashes and underscores"
DIGEST_WANTED = "sha256 is the SHA-256 of the key, 64 digits of 0-9 and a-f"
STREAMS_WANTED = f"the streams are {patterns.WANTED}"
RATE_WANTED = "a rate is a number and a time of up to 31 days, such as 100/second or 60000/minute"

MOST = 2**53
LONGEST_SECONDS = 31 * 86_400
Count = Annotated[int, Meta(ge=0, le=MOST)]
Rate = Annotated[str, Meta(max_length=64)]


class Scope(StrEnum):
    """What a key may do; admin includes the others."""

    READ = "read"
    OBSERVE = "observe"
    LABEL = "label"
    METRICS = "metrics"
    ADMIN = "admin"


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How much of the service one key may use; None: no limit."""

    streams: Count | None = None
    """Once this many streams exist under its prefix, it creates no more; 0: it creates none."""
    bytes: Count | None = None
    """Most bytes of the logs and snapshots of the streams under its prefix."""
    watchers: Count | None = None
    """Event streams at once."""
    requests: Rate | None = None
    samples: Rate | None = None
    """Most samples to observe or score, and points, in a time."""

    def given(self) -> list[str]:
        """Name the limits that are set."""
        return [name for name in self.__struct_fields__ if getattr(self, name) is not None]


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Grant:
    """An entry of ITAN_API_KEYS, known by its place, or a line of the file, by name; holds only the key's digest."""

    digest: bytes = field(repr=False)
    scopes: frozenset[Scope]
    streams: str
    name: int | str
    limits: Limits = NO_LIMITS
    requests: RateLimitItem | None = None
    samples: RateLimitItem | None = None

    @property
    def has_limits(self) -> bool:
        """Tell whether it has any limit."""
        return self.limits != NO_LIMITS

    @property
    def bounds(self) -> Sequence[Bound]:
        """Bound the number of streams with its prefix; an entry for a single stream needs no bound but 0."""
        prefix, star, _ = self.streams.partition("*")
        most = self.limits.streams
        if most is None or (most and not star):
            return NO_BOUNDS
        return (Bound(prefix, most, str(self.name)),)

    def allows(self, scope: Scope, stream: str | None) -> bool:
        """Tell whether the entry allows a scope on a stream (None: on no particular stream)."""
        return (scope in self.scopes or Scope.ADMIN in self.scopes) and (stream is None or self.covers(stream))

    def allowed(self) -> frozenset[Scope]:
        """Give the scopes that the entry has, admin with all that it includes."""
        return frozenset(Scope) if Scope.ADMIN in self.scopes else self.scopes

    def covers(self, stream: str) -> bool:
        """Tell whether the entry covers a stream."""
        return patterns.fits(self.streams, stream)


class Line(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A line of the file."""

    name: str
    sha256: str
    scopes: Annotated[list[Scope], Meta(min_length=1)]
    streams: str = "*"
    limits: Limits = NO_LIMITS


_LINE = msgspec.json.Decoder(Line)


def digest_of(key: str) -> bytes:
    """Hash a key. Keys are long and random, so a fast hash is as good as a slow one."""
    return hashlib.sha256(key.encode()).digest()


def parse_grants(text: str) -> Iterator[Grant]:
    """Read `key[:scopes[:streams]]` entries: scopes joined by +, streams one id or a prefix and *."""
    entries = text.split(",") if text.strip() else []
    for place, entry in enumerate(entries, start=1):
        yield parse_grant(entry.strip(), place)


def parse_grant(entry: str, place: int) -> Grant:
    """Read one entry; a stream pattern may itself hold colons."""
    at = f"ITAN_API_KEYS, entry {place}"
    key, *rest = entry.split(":", 2)
    if not KEY.fullmatch(key):
        raise InvalidKeys(at, "a key is one or more printable ASCII characters without blank, comma and colon")
    streams = rest[1] if len(rest) > 1 else "*"
    refuse_other_streams(streams, at)
    return Grant(digest_of(key), parse_scopes(rest[0], at) if rest else frozenset(Scope), streams, place)


def parse_scopes(text: str, at: str) -> frozenset[Scope]:
    """Read scopes joined by +."""
    try:
        return frozenset(Scope(name) for name in text.split("+"))
    except ValueError:
        raise InvalidKeys(at, f"scopes are {', '.join(Scope)}, joined by +") from None


def read_line(text: bytes, at: str) -> Grant:
    """Read one line of the file."""
    try:
        line = _LINE.decode(text)
    except msgspec.ValidationError as error:
        raise InvalidKeys(at, str(error)) from None
    except (ValueError, RecursionError):
        # the reason would quote the line, which may be a key that somebody put there by mistake
        raise InvalidKeys(at, "not JSON as `itan keys new` writes it") from None
    return grant_of(line, at)


def grant_of(line: Line, at: str) -> Grant:
    """Make a grant from a valid line."""
    refuse_unless(NAME.fullmatch(line.name), at, NAME_WANTED)
    refuse_unless(DIGEST.fullmatch(line.sha256), at, DIGEST_WANTED)
    refuse_other_streams(line.streams, at)
    rates = (parse_rate(line.limits.requests, at), parse_rate(line.limits.samples, at))
    return Grant(bytes.fromhex(line.sha256), frozenset(line.scopes), line.streams, line.name, line.limits, *rates)


def parse_rate(text: str | None, at: str) -> RateLimitItem | None:
    """Read a rate."""
    if text is None:
        return None
    try:
        item = parse(text)
    except ValueError:
        raise InvalidKeys(at, RATE_WANTED) from None
    refuse_unless(1 <= item.amount <= MOST and item.get_expiry() <= LONGEST_SECONDS, at, RATE_WANTED)
    return item


def refuse_other_streams(streams: str, at: str) -> None:
    """Raise InvalidKeys for an invalid pattern of streams."""
    refuse_unless(patterns.PATTERN.fullmatch(streams), at, STREAMS_WANTED)


def refuse_unless(is_right: object, at: str, wanted: str) -> None:
    """Raise InvalidKeys that says what is allowed."""
    if not is_right:
        raise InvalidKeys(at, wanted)
