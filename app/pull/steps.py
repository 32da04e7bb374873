"""Steps: multiples of the step since 1970, in epoch seconds, so that each run has the same ones."""

from datetime import UTC, datetime


def at_or_before(time: float, step: int) -> int:
    """Give the last step until a time.

    >>> at_or_before(100.5, 30)
    90
    """
    return int(time // step) * step


def moment(time: float) -> str:
    """Write a time.

    >>> moment(0)
    '1970-01-01T00:00:00Z'
    """
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%dT%H:%M:%SZ}"
