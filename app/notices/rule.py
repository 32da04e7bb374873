"""Rules: which incidents are told to whom, and when."""

import base64
import binascii
import re
from datetime import UTC, datetime, time
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import httpx2
import msgspec
from msgspec import Meta

from app import patterns
from app.streams.errors import Refused

Target = Literal["webhook", "chat", "alertmanager"]
Transition = Literal["opened", "closed"]
PRINTABLE: Final = re.compile("[!-~]{1,512}")
WHSEC: Final = "whsec_"
REDACTED: Final = "[redacted]"
"""What a refusal shows of what may be a secret."""
SIGNING: Final = f"{WHSEC} and 24 to 64 bytes in base64"
BEARER: Final = "up to 512 printable ASCII characters without blanks"
NONE: Final = "none: a chat's URL is its secret"


class InvalidRule(Refused):
    """A rule that cannot be used."""


class QuietHours(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The hours of each day in which nothing is told; they may span midnight.

    >>> QuietHours("22:00", "07:00", "Europe/Berlin").include(datetime(2026, 11, 29, 22, tzinfo=UTC).timestamp())
    True
    """

    begin: Annotated[str, Meta(max_length=5, examples=["22:00"])]
    end: Annotated[str, Meta(max_length=5, examples=["07:00"])]
    timezone: Annotated[str, Meta(max_length=64, examples=["Europe/Berlin"])] = "UTC"

    def include(self, now: float) -> bool:
        """Tell whether a moment is in them."""
        local = datetime.fromtimestamp(now, UTC).astimezone(ZoneInfo(self.timezone)).time()
        begin, end = time.fromisoformat(self.begin), time.fromisoformat(self.end)
        return begin <= local < end if begin < end else local >= begin or local < end


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Who is told of the incidents of some streams. least_severity: of an incident that reaches it, now or later."""

    streams: Annotated[str, Meta(max_length=129, description="a stream, or a prefix and *")] = "*"
    target: Target
    url: Annotated[str, Meta(max_length=2048, description="where to send; of an Alertmanager, without /api/v2/alerts")]
    secret: Annotated[
        str, Meta(description=f"of a webhook {SIGNING}; of an Alertmanager a bearer token, or none; never given back")
    ] = ""
    least_severity: Annotated[float, Meta(ge=0, le=1000)] = 0.0
    tell: Annotated[tuple[Transition, ...], Meta(min_length=1, max_length=2)] = ("opened", "closed")
    quiet_hours: QuietHours | None = None
    label: Annotated[
        str, Meta(max_length=64, description="the label severity of alerts, and the level in texts", min_length=1)
    ] = "warning"
    source: Annotated[str, Meta(max_length=64, description="the label source of alerts", min_length=1)] = "itan"

    def fits(self, stream: str) -> bool:
        """Tell whether it is for a stream."""
        return patterns.fits(self.streams, stream)

    def is_quiet(self, now: float) -> bool:
        """Tell whether nothing may be told at a moment."""
        return self.quiet_hours is not None and self.quiet_hours.include(now)

    @property
    def host(self) -> str:
        """Give what the log may say of the URL: the rest may be a secret."""
        return httpx2.URL(self.url).host


def check(rule: Rule) -> None:
    """Raise InvalidRule for a rule that cannot be used."""
    if not patterns.PATTERN.fullmatch(rule.streams):
        raise InvalidRule("streams", rule.streams, patterns.WANTED)
    check_url(rule.url)
    check_secret(rule)
    if len(set(rule.tell)) < len(rule.tell):
        raise InvalidRule("tell", rule.tell, "each transition once")
    if rule.target == "alertmanager" and len(rule.tell) < 2:
        raise InvalidRule("tell", rule.tell, "opened and closed: an Alertmanager has to hear both")
    if rule.quiet_hours:
        check_hours(rule.quiet_hours)


def check_url(text: str) -> None:
    """Raise InvalidRule for what is no URL to send to; a refusal does not repeat a password."""
    try:
        url = httpx2.URL(text)
        # as it is sent: a host that cannot be encoded, or a port that is none, fails here
        is_url = url.scheme in ("http", "https") and bool(url.host) and bool(url.raw_host)
        is_url &= url.port is None or 1 <= url.port <= 65_535
    except (httpx2.InvalidURL, ValueError):
        is_url = False
    if not (is_url and text.isascii() and text.isprintable()):
        raise InvalidRule("url", redacted(text), "an http or https URL in ASCII")
    if url.userinfo or url.fragment:
        raise InvalidRule("url", url.host, "a URL without a user, a password or a fragment")


def check_secret(rule: Rule) -> None:
    """Raise InvalidRule for a secret that its target cannot use, without repeating it."""
    match rule.target:
        case "webhook":
            is_good, limit = is_signing_secret(rule.secret), SIGNING
        case "alertmanager":
            is_good, limit = not rule.secret or bool(PRINTABLE.fullmatch(rule.secret)), BEARER
        case "chat":
            is_good, limit = not rule.secret, NONE
    if not is_good:
        raise InvalidRule("secret", redacted(rule.secret), limit)


def redacted(value: Any) -> Any:
    """Give what a refusal shows of a value that may be a secret: nothing of it, but whether there is one."""
    return REDACTED if value else value


def is_signing_secret(secret: str) -> bool:
    """Tell whether a secret is of the form that Standard Webhooks ask for."""
    try:
        return secret.startswith(WHSEC) and 24 <= len(signing_key(secret)) <= 64
    except (binascii.Error, ValueError):
        return False


def signing_key(secret: str) -> bytes:
    """Give the key in a secret."""
    return base64.b64decode(secret.removeprefix(WHSEC), validate=True)


def check_hours(hours: QuietHours) -> None:
    """Raise InvalidRule for hours that are none, or a time zone that nobody knows."""
    for name, text in (("begin", hours.begin), ("end", hours.end)):
        if not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", text, re.ASCII):
            raise InvalidRule(f"quiet_hours.{name}", text, "a time from 00:00 to 23:59")
    if hours.begin == hours.end:
        raise InvalidRule("quiet_hours.end", hours.end, "another time than begin")
    try:
        ZoneInfo(hours.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidRule("quiet_hours.timezone", hours.timezone, "an IANA time zone, such as Europe/Berlin") from None
