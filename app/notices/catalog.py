"""The rules by name."""

import msgspec

from app.documents import Documents, UnknownDocument
from app.notices.rule import Rule
from app.storage import DocumentKind, Store
from app.streams.open.clock import Clock

Rules = Documents[Rule]


class UnknownRule(UnknownDocument):
    """No such rule."""

    kind = DocumentKind.RULE


def rules_in(store: Store, clock: Clock, most: int) -> Rules:
    """Give the rules of a store."""
    return Rules(store, clock, most, UnknownRule, read_rule)


def read_rule(body: bytes) -> Rule:
    """Give a rule that is kept."""
    return msgspec.json.decode(body, type=Rule)
