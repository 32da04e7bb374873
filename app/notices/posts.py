"""The request that tells a notice, for each target."""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from app.notices.notice import Notice, described, rfc3339, summary
from app.notices.rule import Rule, Target, signing_key

ALERT_SECONDS: Final = 240.0
"""So long an Alertmanager keeps an alert that it does not hear of again; open ones are sent again each quarter."""
RESEND_SECONDS: Final = ALERT_SECONDS / 4
JSON: Final = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Post:
    """A request to send. Its parts may be secret: they are not for the log."""

    url: str = field(repr=False)
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False, default_factory=dict)


def post_of(rule: Rule, notice: Notice, now: float) -> Post:
    """Make the request that tells a notice."""
    return POSTS[rule.target](rule, notice, now)


def webhook(rule: Rule, notice: Notice, now: float) -> Post:
    """Sign a notice as Standard Webhooks do: the time is that of the try, id and body stay."""
    body, sent_at = msgspec.json.encode(notice), str(int(now))
    signature = signature_of(rule.secret, notice.id, sent_at, body)
    headers = {"webhook-id": notice.id, "webhook-timestamp": sent_at, "webhook-signature": signature}
    return Post(rule.url, body, JSON | headers)


def signature_of(secret: str, notice: str, sent_at: str, body: bytes) -> str:
    """Sign a body, its id and the time of the try."""
    digest = hmac.digest(signing_key(secret), f"{notice}.{sent_at}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


def chat(rule: Rule, notice: Notice, _: float) -> Post:
    """Write a notice as the text that chats take: Slack, Mattermost, Rocket.Chat, and others that do as Slack does."""
    lines = [summary(notice), *map(described, notice.data.features)]
    if notice.data.url:
        lines.append(notice.data.url)
    return Post(rule.url, msgspec.json.encode({"text": "\n".join(lines)}), JSON)


def alertmanager(rule: Rule, notice: Notice, now: float) -> Post:
    """Make an alert of a notice."""
    return alerts(rule, [notice], now)


def alerts(rule: Rule, notices: Sequence[Notice], now: float) -> Post:
    """Make alerts of notices."""
    token = {"Authorization": f"Bearer {rule.secret}"} if rule.secret else {}
    body = msgspec.json.encode([alert(rule, notice, now) for notice in notices])
    return Post(rule.url.rstrip("/") + "/api/v2/alerts", body, JSON | token)


def alert(rule: Rule, notice: Notice, now: float) -> dict[str, Any]:
    """Make an alert of a notice: one that ends in a while unless it is sent again, or has ended."""
    about = notice.data
    made = {
        "labels": {"alertname": "ItanIncident", "stream": about.stream, "source": rule.source, "severity": rule.label},
        "annotations": annotations(notice),
        "startsAt": rfc3339(about.begin),
        "endsAt": rfc3339(now + ALERT_SECONDS if notice.is_open else end_of_alert(notice, now)),
    }
    return made | ({"generatorURL": about.url} if about.url else {})


def end_of_alert(notice: Notice, now: float) -> float:
    """Give the end of an incident as an Alertmanager takes it: not before its beginning, not after this moment."""
    end = notice.data.begin if notice.data.ended_at is None else notice.data.ended_at
    return max(notice.data.begin, min(end, now))


def annotations(notice: Notice) -> dict[str, str]:
    """Say of an incident what people want to know; an Alertmanager keeps texts only."""
    about = notice.data
    texts = {
        "summary": summary(notice),
        "description": "; ".join(map(described, about.features)),
        "features": ", ".join(feature.name for feature in about.features),
        "incident": about.id,
        "peak": "" if about.peak_time is None else rfc3339(about.peak_time),
        "severity": "" if about.peak_severity is None else f"{about.peak_severity:.2f}",
        "url": about.url or "",
    }
    return {name: text for name, text in texts.items() if text}


POSTS: Final[dict[Target, Callable[[Rule, Notice, float], Post]]] = {
    "webhook": webhook,
    "chat": chat,
    "alertmanager": alertmanager,
}
