"""The rules as this worker last read them."""

from collections.abc import Mapping

from app.notices.rule import Rule


class Audience:
    """Knows whether anybody is to be told of a stream, without asking the store."""

    def __init__(self) -> None:
        self.rules: Mapping[str, Rule] | None = None
        """None as long as they have not been read."""

    def is_told_of(self, stream: str) -> bool:
        """Tell whether any rule is for a stream; while the rules are not known, one may be."""
        return self.rules is None or bool(self.of(stream))

    def of(self, stream: str) -> list[str]:
        """Name the rules for a stream."""
        return [name for name, rule in (self.rules or {}).items() if rule.fits(stream)]
