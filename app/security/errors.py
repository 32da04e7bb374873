"""Why a request is not allowed, and why keys cannot be read."""

import math

from limits import RateLimitItem

CSRF_HEADER = "X-CSRF-Token"


class InvalidKeys(ValueError):
    """Keys that cannot be read; the message gives the place of the entry or line, never its text."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")


class Unauthenticated(Exception):
    """A request without a key, or with an unknown one."""

    def __init__(self) -> None:
        super().__init__("a valid key is needed, as Authorization: Bearer <key> or as X-API-Key: <key>")


class CrossSite(Exception):
    """A change that a web page of another site makes a browser send."""

    def __init__(self) -> None:
        super().__init__("a page of another site may not change anything here (Sec-Fetch-Site: cross-site)")


class CsrfTokenNeeded(Exception):
    """A change with only the page's cookie, which a browser sends for any page."""

    def __init__(self) -> None:
        super().__init__(f"a change made with the cookie needs the header {CSRF_HEADER} as /session gives it")


class Forbidden(Exception):
    """A valid key that does not allow this."""

    def __init__(self, scope: str, stream: str | None) -> None:
        super().__init__(
            f"the key does not have the scope {str(scope)!r}" + ("" if stream is None else f" on stream {stream!r}")
        )


class RateLimited(Exception):
    """A key beyond its rate; nothing was changed."""

    def __init__(self, limit_name: str, key: int | str, rate: RateLimitItem, cost: int, seconds: float) -> None:
        self.limit_name, self.key, self.cost, self.seconds = limit_name, str(key), cost, seconds
        self.limit = f"at most {rate} (limit of key {self.key!r})"
        wait = max(1, math.ceil(seconds))
        super().__init__(f"{cost} more {limit_name} are too many now: {self.limit}; try again in {wait} s")


class BeyondRate(Exception):
    """A request with more samples than the whole rate of its key; waiting would not help."""

    def __init__(self, limit_name: str, key: int | str, rate: RateLimitItem, cost: int) -> None:
        self.limit_name, self.key, self.cost = limit_name, str(key), cost
        self.limit = f"at most {rate.amount} {limit_name} in one request (limit of key {self.key!r})"
        super().__init__(f"{cost} {limit_name} are too many: {self.limit}")


class KeyFull(Exception):
    """The streams of a key take as many bytes as they may; nothing was changed."""

    limit_name = "bytes"

    def __init__(self, key: int | str, streams: str, most: int, kept: int, seconds: float) -> None:
        self.key, self.kept, self.seconds = str(key), kept, max(1.0, seconds)
        self.limit = f"at most {most} bytes of {streams} (limit of key {self.key!r})"
        super().__init__(f"{kept} bytes in {streams} are too many: {self.limit}")
