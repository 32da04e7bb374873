"""Which keys of a record are features, and what these are called."""

import re
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

MOST_KNOWN: Final = 10_000
LONGEST_KNOWN: Final = 256


def leaves_of(tree: dict[str, Any]) -> dict[str, Any]:
    """Give the values inside a record by their paths; arrays stay whole.

    >>> leaves_of({"tags": {"host": "web"}, "values": [1, 2]})
    {'values': [1, 2], 'tags.host': 'web'}
    """
    found: dict[str, Any] = {}
    waiting = deque([("", tree)])
    while waiting:
        prefix, node = waiting.popleft()
        for name, value in node.items():
            if isinstance(value, dict):
                waiting.append((f"{prefix}{name}.", value))
            else:
                found[prefix + name] = value
    return found


class Keys:
    """Features by patterns of their paths, in which * stands for anything.

    A feature is called by what follows the last dot before the first *; without a *, by what follows the last dot.
    """

    def __init__(self, features: Sequence[str], ignore: Sequence[str]) -> None:
        self._features = [(pattern_of(glob), len(fixed_part(glob)), "*" in glob) for glob in features]
        self._ignored = [pattern_of(glob) for glob in ignore]
        self._known: dict[str, tuple[str, bool] | None] = {}

    def feature_of(self, path: str) -> tuple[str, bool] | None:
        """Give the name of the feature at a path, and whether it was meant alone; None if it is no feature."""
        if len(path) > LONGEST_KNOWN:
            return self._find(path)
        if path not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[path] = self._find(path)
        return self._known[path]

    def _find(self, path: str) -> tuple[str, bool] | None:
        if any(pattern.fullmatch(path) for pattern in self._ignored):
            return None
        for pattern, fixed, is_open in self._features:
            if pattern.fullmatch(path):
                return path[fixed:], not is_open
        return None


def pattern_of(glob: str) -> re.Pattern[str]:
    """Make a pattern in which * stands for anything."""
    return re.compile(".*".join(map(re.escape, glob.split("*"))), re.DOTALL)


def fixed_part(glob: str) -> str:
    """Give what comes before the name of a feature.

    >>> [fixed_part(glob) for glob in ("fields.*", "*", "gauge.value", "a.b_*")]
    ['fields.', '', 'gauge.', 'a.']
    """
    head, dot, _ = glob.partition("*")[0].rpartition(".")
    return head + dot
