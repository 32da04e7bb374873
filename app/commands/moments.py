"""Times that commands are given."""


def moment_of(text: str) -> float | str:
    """Give epoch seconds as the number that they are; the service reads any other time.

    >>> moment_of("1800000000"), moment_of("2027-01-15T08:00:00Z")
    (1800000000.0, '2027-01-15T08:00:00Z')
    """
    try:
        return float(text)
    except ValueError:
        return text
