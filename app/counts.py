"""Numbers of things, as people write them."""


def counted(n: int, one: str) -> str:
    """Say how many there are of something.

    >>> counted(1, "false alarm"), counted(0, "false alarm")
    ('1 false alarm', '0 false alarms')
    """
    return f"{n} {one}" if n == 1 else f"{n} {one}s"
