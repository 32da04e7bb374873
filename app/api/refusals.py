"""What is refused before there is a request that the app could answer."""

from app.streams.errors import Refused


class InvalidHttp(Refused):
    """Bytes that are no HTTP request, or none that is safe to read."""

    def __init__(self, reason: str) -> None:
        super().__init__("request", None, f"HTTP/1.1: {reason}")
        self.args = (f"the request cannot be read: {reason}",)


class HeadTooLarge(Refused):
    """A request line with headers that is longer than the service reads."""
