"""Which notices of an incident are due."""

from collections.abc import Sequence

from app.notices.notice import Kind, Told
from app.notices.rule import Rule
from app.storage import IncidentChange
from app.streams.log.incident_ids import id_of
from app.streams.log.incidents import Incident
from app.streams.views.incidents import page_of


def kinds_due(rule: Rule, incident: Incident, *, is_known: bool) -> Sequence[Kind]:
    """Give the notices that are due of an incident that concerns a rule, in their order.

    is_known: the rule has looked at it before, so its opening is told. Otherwise it depends on the incident as it is
    now: one that opened and ended before anybody looked has both told.
    """
    kinds: list[Kind] = [] if is_known or "opened" not in rule.tell else ["incident.opened"]
    if incident.ended and "closed" in rule.tell:
        kinds.append("incident.closed")
    return kinds


def concerns(rule: Rule, incident: Incident, change: IncidentChange) -> bool:
    """Tell whether an incident that a rule does not know yet concerns it."""
    is_severe = incident.peak_severity >= rule.least_severity
    is_label = change.position.sub > 0  # labels end incidents, and say what they were: they open none
    return is_severe and not is_label and not is_slept_through(rule, incident)


def is_slept_through(rule: Rule, incident: Incident) -> bool:
    """Tell whether an incident opened and ended in quiet hours."""
    ended_at = incident.ended_at
    return ended_at is not None and rule.is_quiet(incident.opened / 1000) and rule.is_quiet(ended_at)


def told_incident(stream: str, incident: Incident, page: str) -> Told:
    """Give an incident as a notice tells it; page is where people reach the live page."""
    return Told(
        id=id_of(stream, incident.seq, incident.opened),
        stream=stream,
        incident=incident.seq,
        state=incident.state,
        begin=incident.begin,
        peak_time=incident.peak_time,
        peak_severity=incident.peak_severity,
        ended_at=incident.ended_at,
        features=incident.features,
        url=page_of(stream, incident.seq, page) if page else None,
    )
