"""Spans of time as people write them."""

import re

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
LONGEST_SECONDS = 10_000 * UNITS["d"]
FORM = re.compile(r"([0-9]{1,9})([smhd])")


def read_duration(text: str) -> int:
    """Read seconds from a text such as 90s, 15m, 12h or 30d; ValueError for anything else.

    >>> read_duration("30d")
    2592000
    """
    found = FORM.fullmatch(text)
    seconds = int(found[1]) * UNITS[found[2]] if found else 0
    if not 0 < seconds <= LONGEST_SECONDS:
        raise ValueError(f"{text!r} is not a time such as 90s, 15m, 12h or 30d, up to 10000d")
    return seconds
