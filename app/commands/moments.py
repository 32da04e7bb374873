"""Times, as commands read and print them."""

from datetime import UTC, datetime


def moment_of(text: str) -> float | str:
    """Give epoch seconds as the number that they are; the service reads any other time.

    >>> moment_of("1800000000"), moment_of("2027-01-15T08:00:00Z")
    (1800000000.0, '2027-01-15T08:00:00Z')
    """
    try:
        return float(text)
    except ValueError:
        return text


def moment(seconds: float) -> str:
    """Write a time; one that no calendar has stays a number.

    >>> moment(1_800_000_000.5), moment(1e18)
    ('2027-01-15 08:00:00', '1e+18')
    """
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return str(seconds)
