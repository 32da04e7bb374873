"""Rules: who is told of incidents."""

import msgspec


class QuietHours(msgspec.Struct, frozen=True):
    """The hours of each day in which nothing is told."""

    begin: str
    end: str
    timezone: str


class Rule(msgspec.Struct, frozen=True):
    """A rule without its secret."""

    rule: str
    streams: str
    target: str
    url: str
    has_secret: bool
    least_severity: float
    tell: list[str]
    quiet_hours: QuietHours | None
    label: str
    source: str


class RuleNames(msgspec.Struct, frozen=True):
    """The names of all rules in order."""

    rules: list[str]


class RuleTest(msgspec.Struct, frozen=True):
    """What became of a test notice; reason says why it was not delivered."""

    id: str
    delivered: bool
    status: int | None
    reason: str | None
