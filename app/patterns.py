"""Patterns of streams, as keys, templates, rules and lifetimes have them: one stream id, or a prefix followed by *."""

import re
from typing import Final

PATTERN: Final = re.compile(r"(?=.)[A-Za-z0-9._:-]{0,128}\*?")
WANTED: Final = "a stream id, or a prefix followed by *"


def fits(pattern: str, stream: str) -> bool:
    """Tell whether a stream fits a pattern.

    >>> fits("plant-*", "plant-7"), fits("plant-7", "plant-71")
    (True, False)
    """
    return stream.startswith(pattern[:-1]) if pattern.endswith("*") else stream == pattern
