"""All connections of the process: how many there may be, and how much memory they take together."""

import errno
import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from app.api.refusals import HeadTooLarge, InvalidHttp, TooManyBodies, TooManyConnections, TooSlow
from app.metrics import Metrics
from app.protocol.closings import Closings
from app.protocol.limits import SPARES, Limits
from app.streams.errors import Refused

if TYPE_CHECKING:
    from app.protocol.connection import Connection

LONGEST_STEP_SECONDS: Final = 1.0
AT_ONCE: Final = 16
REASONS: Final[dict[type[Refused], str]] = {
    InvalidHttp: "invalid",
    HeadTooLarge: "head",
    TooManyConnections: "full",
    TooManyBodies: "bodies",
}


class Connections:
    """Knows all connections, makes room for new ones, and checks each regularly.

    A waiting connection has no request that is being answered; they are kept in the order in which they began to wait.
    Time moves at most a second between two checks, so clients are not blamed when the process itself was held up.
    """

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits = limits
        self.now = 0.0
        self.held_bytes = 0
        """Bytes of the bodies that are arriving or being handled."""
        self._looked_at: float | None = None
        self._open: set[Connection] = set()
        self._waiting: OrderedDict[Connection, None] = OrderedDict()
        self._spares: OrderedDict[Connection, None] = OrderedDict()
        self._closings = Closings(metrics.connections_closed)
        metrics.watch_connections(self, limits.connections, limits.body_bytes)

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: "Connection") -> None:
        """Add a new connection."""
        self._open.add(connection)
        if len(self._open) > self.limits.connections:
            self._make_room(connection)
        if connection in self._open:
            self.wait(connection)

    def _make_room(self, newcomer: "Connection") -> None:
        """Close the connection that has waited longest; if none waits, accept the new one for probes only."""
        if self._waiting:
            self.close(next(iter(self._waiting)), "room")
            return
        newcomer.is_spare = True
        if len(self._open) > self.limits.connections + SPARES:
            self.close(next(iter(self._spares), newcomer), "full")

    def wait(self, connection: "Connection") -> None:
        """Note that a connection has no request now."""
        (self._spares if connection.is_spare else self._waiting)[connection] = None

    def work(self, connection: "Connection") -> None:
        """Note that a connection has a request."""
        (self._spares if connection.is_spare else self._waiting).pop(connection, None)

    def discard(self, connection: "Connection") -> None:
        """Forget a connection that has ended."""
        self._open.discard(connection)
        self.work(connection)

    def close(self, connection: "Connection", reason: str) -> None:
        """End a connection at once."""
        self.discard(connection)
        self._closings.note(reason, self.now)
        connection.transport.abort()

    def relieve(self, growing: "Connection") -> None:
        """Refuse the bodies that have been arriving longest until the others have room; raise for the growing one."""
        coming = sorted((each for each in self._open if each.is_receiving), key=lambda each: each.begun_at)
        for connection in coming:
            if self.held_bytes <= self.limits.body_bytes:
                return
            error = TooManyBodies(self.limits.body_bytes)
            if connection is growing:
                raise error
            connection.refuse(error)

    def note(self, error: Refused) -> None:
        """Count a connection that ends with a refusal."""
        reason = f"slow_{error.field}" if isinstance(error, TooSlow) else REASONS[type(error)]
        self._closings.note(reason, self.now)

    def note_idle(self) -> None:
        """Count a connection that ends because nothing came."""
        self._closings.note("idle", self.now)

    def look(self, monotonic: float) -> None:
        """Advance the time, and end what has taken too long."""
        passed = 0.0 if self._looked_at is None else monotonic - self._looked_at
        self._looked_at = monotonic
        self.now += min(passed, LONGEST_STEP_SECONDS)
        for connection in list(self._open):
            connection.check(self.now)
        if not can_open_files():
            self._free_files()
        self._closings.tell(self.now)

    def _free_files(self) -> None:
        """Close some waiting connections: until then new ones would be cut off without an answer."""
        for connection in list(self._waiting)[:AT_ONCE]:
            self.close(connection, "files")
        # even if none waits
        self._closings.note("files", self.now, count=0)


def can_open_files() -> bool:
    """Tell whether the process may open one more file."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno not in (errno.EMFILE, errno.ENFILE)
    return True
