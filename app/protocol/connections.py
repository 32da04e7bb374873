"""All connections of the process."""

from typing import TYPE_CHECKING, Final

from app.api.refusals import HeadTooLarge, InvalidHttp
from app.metrics import Metrics
from app.protocol.closings import Closings
from app.protocol.limits import Limits
from app.streams.errors import Refused

if TYPE_CHECKING:
    from app.protocol.connection import Connection

LONGEST_STEP_SECONDS: Final = 1.0
REASONS: Final[dict[type[Refused], str]] = {InvalidHttp: "invalid", HeadTooLarge: "head"}


class Connections:
    """Knows who is connected, and looks after them all in turn.

    Its time goes on at most a second from look to look: where the process itself was held up, no client is to blame.
    """

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits = limits
        self.now = 0.0
        self._looked_at: float | None = None
        self._open: set[Connection] = set()
        self._closings = Closings(metrics.connections_closed)
        metrics.connections.set_function(self._open.__len__)

    def add(self, connection: "Connection") -> None:
        """Take note of a new connection."""
        self._open.add(connection)

    def discard(self, connection: "Connection") -> None:
        """Forget a connection that has ended."""
        self._open.discard(connection)

    def note(self, error: Refused) -> None:
        """Count a connection that ends with a refusal."""
        self._closings.note(REASONS[type(error)], self.now)

    def look(self, monotonic: float) -> None:
        """Let time go on, and end what has taken too long."""
        passed = 0.0 if self._looked_at is None else monotonic - self._looked_at
        self._looked_at = monotonic
        self.now += min(passed, LONGEST_STEP_SECONDS)
        for connection in list(self._open):
            connection.check(self.now)
        self._closings.tell(self.now)
