"""How many streams may exist: in all, or with the prefix of an API key."""

from collections.abc import Sequence
from typing import NamedTuple


class Bound(NamedTuple):
    """At most `most` streams whose names begin with `prefix`; set by an API key, or by the service (key None)."""

    prefix: str
    most: int
    key: str | None = None

    @property
    def text(self) -> str:
        """Say what the bound is."""
        if self.key is None:
            return f"at most {self.most} streams (ITAN_MAX_STREAMS)"
        return f"at most {self.most} streams {self.prefix}* (limit of key {self.key!r})"


NO_BOUNDS: Sequence[Bound] = ()
