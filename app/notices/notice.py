"""What a notice says of an incident."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from app.streams.log.incident_ids import id_of
from app.streams.log.incidents import MainFeature

Kind = Literal["incident.opened", "incident.closed", "test"]
# the years that RFC 3339 has
EARLIEST, LATEST = -62_135_596_800.0, 253_402_300_799.0


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """An incident as a notice tells it, in the words of /incidents; times are epoch seconds."""

    id: Annotated[str, Meta(description="as /incidents gives it")]
    stream: str
    incident: Annotated[int, Meta(description="seq of the sample that opened it")]
    state: str
    begin: float
    peak_time: float | None = None
    peak_severity: float | None = None
    ended_at: float | None = None
    features: Sequence[MainFeature] = ()
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
    ended_at = None if kind == "incident.opened" else incident.ended_at
    happened = incident.begin if ended_at is None else ended_at
    return Notice(id=notice_id(rule, kind, incident.id), type=kind, timestamp=rfc3339(happened), data=incident)


def trial_notice(rule: str, streams: str, now: float) -> Notice:
    """Make a notice that says that it is none."""
    stream = streams.rstrip("*") or "test"
    incident = id_of(stream, 1, max(round(now * 1000), 0))
    about = Told(id=incident, stream=stream, incident=1, state="test", begin=now, ended_at=now, peak_severity=0.0)
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
    how_rare = "" if about.peak_severity is None else f", severity {about.peak_severity:.1f}"
    return f"Incident {about.incident} of {about.stream} {verb}{how_rare}"


def described(feature: MainFeature) -> str:
    """Say what was seen of a feature.

    >>> described(MainFeature("cpu", 97.25, 12.0, 8.0))
    'cpu 97.25, expected 12'
    """
    seen = "missing" if feature.value is None else f"{feature.value:.6g}"
    return f"{feature.name} {seen}, expected {feature.expected:.6g}"
