"""What both clients know of the way to the service."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from itan_client.events import LEAST_TIMEOUT_SECONDS

DEFAULT_URL: Final = "http://127.0.0.1:8000"
LOOPBACK: Final = {"127.0.0.1", "::1", "localhost"}


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the service is, the key, and how long to wait for it."""

    url: str
    key: str | None
    timeout_seconds: float

    def options(self) -> dict[str, Any]:
        """Give the options of a client of httpx."""
        return {
            "base_url": self.url,
            "headers": {"Authorization": f"Bearer {self.key}"} if self.key else {},
            "timeout": self.timeout_seconds,
            # a proxy named in the environment cannot reach this machine's own loopback
            "trust_env": urlsplit(self.url).hostname not in LOOPBACK,
        }

    @property
    def silence_seconds(self) -> float:
        """How long a watched stream may say nothing."""
        return max(self.timeout_seconds, LEAST_TIMEOUT_SECONDS)
