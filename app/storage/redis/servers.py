"""How the servers of a store are reached, whether one or several."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from app.storage.errors import StoreUnavailable

# A call waits for at most about (retries + 1) times the socket timeout; both can be set in the URL's query.
DEFAULTS = {"socket_timeout": 2.0, "socket_connect_timeout": 1.0, "max_connections": 16}
RETRIES = 1
PAUSE_SECONDS = 0.2

Words = tuple[Any, ...]
Info = Mapping[str, Any]


class Servers(Protocol):
    """Sends commands in pipelines; each answer is a value or an error."""

    leases_together: int
    """How many streams' leases one script may use; a Cluster spreads them over its nodes."""
    timeout_seconds: float
    backoff: "CountedBackoff"

    async def open(self) -> None:
        """Check that the servers answer."""

    async def close(self) -> None:
        """Close all connections."""

    async def exchange(self, commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
        """Send commands, and on each connection used, `waits` behind them."""

    async def exchange_short(self, commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
        """Do the same for commands with short answers, one call at a time, in a faster way if there is one."""

    async def info(self, *sections: str) -> list[Info]:
        """Get INFO from every primary."""

    async def ask(self, *words: Any) -> Any:
        """Send one command that any server can answer."""


class CountedBackoff(ExponentialBackoff):
    """The pause before a command is sent again; it counts the retries."""

    def __init__(self) -> None:
        super().__init__(cap=PAUSE_SECONDS, base=PAUSE_SECONDS / 2)
        self.retries = 0

    def compute(self, failures: int) -> float:
        """Give the seconds to wait; redis-py calls this before each retry, and only then."""
        self.retries += 1
        return super().compute(failures)

    def __deepcopy__(self, _: object) -> "CountedBackoff":
        # redis-py copies this for each connection, but all must count together
        return self


def retry(backoff: CountedBackoff) -> Retry:
    """Give the policy: try again once, soon."""
    return Retry(backoff, RETRIES)


def accept(answers: list[Any]) -> list[Any]:
    """Give answers, or raise the first error among them."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers


def judge(answers: list[Any], waited: Sequence[Any]) -> list[Any]:
    """Give the answers if the waits succeeded; otherwise the writes may be lost with the server, so they failed."""
    shortfall = next((answer for answer in waited if not is_enough(answer)), None)
    if shortfall is None:
        return answers
    reason = f"Redis: {shortfall}" if isinstance(shortfall, Exception) else f"Redis: only {shortfall} kept it in time"
    return [answer if isinstance(answer, Exception) else StoreUnavailable(reason) for answer in answers]


def is_enough(kept_by: Any) -> bool:
    """Tell whether WAIT, or WAITAOF with its [local, replicas], counted at least one."""
    if isinstance(kept_by, Exception):
        return False
    return int(kept_by[0] if isinstance(kept_by, list) else kept_by) >= 1


def merge(infos: Iterable[Any]) -> Info:
    """Join several sections of INFO."""
    merged: dict[str, Any] = {}
    for info in infos:
        merged.update(info)
    return merged
