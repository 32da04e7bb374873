"""What a notice says of an incident."""

import hashlib
from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from app.streams.log.incident_ids import id_of

Kind = Literal["incident.opened", "incident.closed", "test"]
# the years that RFC 3339 has
EARLIEST, LATEST = -62_135_596_800.0, 253_402_300_799.0


class MainFeature(msgspec.Struct, frozen=True):
    """A feature that makes an incident: what was seen at its peak, what was expected, and the nats that it adds."""

    name: str
    seen: float | None
    expected: float | None
    nats: float | None


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """An incident as a notice tells it; times are RFC 3339."""

    stream: str
    incident: Annotated[str, Meta(description="its id, as /incidents gives it")]
    seq: Annotated[int, Meta(description="of the sample that opened it")]
    state: str
    began_at: str
    peak_at: str | None = None
    ended_at: str | None = None
    severity: Annotated[float | None, Meta(description="at its peak")] = None
    features: list[MainFeature] = []
    url: str | None = None


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One notice. A receiver that gets an id twice has got one notice twice."""

    id: str
    type: Kind
    timestamp: Annotated[str, Meta(description="when what it tells happened")]
    data: Told

    @property
    def is_open(self) -> bool:
        """Tell whether the incident is open."""
        return self.type == "incident.opened"


def notice_id(rule: str, kind: Kind, incident: str) -> str:
    """Give the id of a notice of an incident: the same for ever, whoever sends it and however often."""
    parts = (rule, kind, incident)
    return f"msg_{hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]}"


def notice_of(rule: str, kind: Kind, incident: Told) -> Notice:
    """Make the notice of a rule about an incident."""
    happened = incident.began_at if kind == "incident.opened" else incident.ended_at or incident.began_at
    return Notice(id=notice_id(rule, kind, incident.incident), type=kind, timestamp=happened, data=incident)


def trial_notice(rule: str, streams: str, now: float) -> Notice:
    """Make a notice that says that it is none."""
    stream = streams.rstrip("*") or "test"
    incident, at = id_of(stream, 1, max(round(now * 1000), 0)), rfc3339(now)
    about = Told(stream=stream, incident=incident, seq=1, state="test", began_at=at, ended_at=at, severity=0)
    return notice_of(rule, "test", about)


def rfc3339(seconds: float) -> str:
    """Write epoch seconds as RFC 3339, to the millisecond."""
    seconds = min(max(seconds, EARLIEST), LATEST)
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def summary(notice: Notice) -> str:
    """Say a notice in one line.

    >>> summary(trial_notice("ops", "web-*", 0))
    'A test of the notices of web-'
    """
    about = notice.data
    if notice.type == "test":
        return f"A test of the notices of {about.stream}"
    verb = "opened" if notice.is_open else f"ended ({about.state})"
    how_rare = "" if about.severity is None else f", severity {about.severity:.1f}"
    return f"Incident {about.seq} of {about.stream} {verb}{how_rare}"


def described(feature: MainFeature) -> str:
    """Say what was seen of a feature.

    >>> described(MainFeature("cpu", 97.25, 12.0, 8.0))
    'cpu 97.25, expected 12'
    """
    seen = "missing" if feature.seen is None else f"{feature.seen:.6g}"
    return f"{feature.name} {seen}" + ("" if feature.expected is None else f", expected {feature.expected:.6g}")
