"""Rules: who is told of incidents."""

from typing import Annotated

import msgspec
from msgspec import Meta

from app.notices.rule import QuietHours, Rule, Target, Transition


class RuleBody(Rule, frozen=True, kw_only=True):
    """A rule, whole: a secret that is not in it is not kept from the rule before."""


class RuleAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A rule without its secret."""

    rule: str
    streams: str
    target: Target
    url: str
    has_secret: bool
    least_severity: float
    tell: tuple[Transition, ...]
    quiet_hours: QuietHours | None
    label: str
    source: str


class RuleList(msgspec.Struct):
    """The names of all rules in order."""

    rules: list[str]


class TestAnswer(msgspec.Struct, frozen=True):
    """What became of a test notice; reason says why it was not delivered."""

    id: Annotated[str, Meta(description="of the notice")]
    delivered: bool
    status: Annotated[int | None, Meta(description="what the receiver answered")] = None
    reason: str | None = None
