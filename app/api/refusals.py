"""What is refused before there is a request that the app could answer."""

from app.streams.errors import Refused


class InvalidHttp(Refused):
    """Bytes that are no HTTP request, or none that is safe to read."""

    def __init__(self, reason: str) -> None:
        super().__init__("request", None, f"HTTP/1.1: {reason}")
        self.args = (f"the request cannot be read: {reason}",)


class HeadTooLarge(Refused):
    """A request line with headers that is longer than the service reads."""


class TooSlow(Refused):
    """A head or a body that does not come."""


class TooManyConnections(Refused):
    """A request on a connection beyond the limit, where only probes are answered."""

    def __init__(self, limit: int) -> None:
        super().__init__("connections", limit, f"at most {limit} (ITAN_MAX_CONNECTIONS)")
        self.args = (f"there are {limit} connections already, which is the limit (ITAN_MAX_CONNECTIONS)",)


class TooManyBodies(Refused):
    """A body that came for longer than others, when there was no memory for all of them."""

    def __init__(self, limit: float) -> None:
        super().__init__(
            "body", None, f"together with all other bodies at most {limit:.0f} bytes (ITAN_BODY_BUDGET_MB)"
        )
        self.args = (
            "too many request bodies are arriving at once (ITAN_BODY_BUDGET_MB), and this one has taken longest",
        )
