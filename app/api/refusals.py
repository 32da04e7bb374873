"""Errors of requests that are refused before they reach the app."""

from app.counts import counted
from app.streams.errors import Refused


class NothingTaken(Exception):
    """A request of many records that were all refused."""

    def __init__(self, refused: int) -> None:
        super().__init__(f"each of the {refused} records was refused: see errors" if refused > 1 else "")


class PartlyTaken(Exception):
    """A request of many records of which some were refused, from a sender that reads only the status."""

    def __init__(self, refused: int) -> None:
        super().__init__(f"{counted(refused, 'record')} refused, and the others taken: see errors")


class InvalidHttp(Refused):
    """Bytes that are not an HTTP request, or not one that is safe to read."""

    def __init__(self, reason: str) -> None:
        super().__init__("request", None, f"HTTP/1.1: {reason}")
        self.args = (f"the request cannot be read: {reason}",)


class HeadTooLarge(Refused):
    """A request line and headers longer than the service reads."""


class TooSlow(Refused):
    """A head or a body that arrives too slowly."""


class TooManyConnections(Refused):
    """A request on a connection beyond the limit, where only probes get an answer."""

    def __init__(self, limit: int) -> None:
        super().__init__("connections", limit, f"at most {limit} (ITAN_MAX_CONNECTIONS)")
        self.args = (f"there are {limit} connections already, which is the limit (ITAN_MAX_CONNECTIONS)",)


class TooManyBodies(Refused):
    """The body that has been arriving for longest when all bodies together exceed their memory."""

    def __init__(self, limit: float) -> None:
        super().__init__(
            "body", None, f"together with all other bodies at most {limit:.0f} bytes (ITAN_BODY_BUDGET_MB)"
        )
        self.args = (
            "too many request bodies are arriving at once (ITAN_BODY_BUDGET_MB), and this one has taken longest",
        )
