"""uvicorn's server, with our connections."""

import math
import sys
from functools import partial
from time import monotonic
from typing import Any, Literal

import uvicorn

from app.protocol.connection import Connection
from app.protocol.connections import Connections

TICKS_TO_A_LOOK = 5  # half a second


def configure(
    app: Any, connections: Connections, shutdown_seconds: float, loop: Literal["auto", "asyncio", "uvloop"] = "auto"
) -> uvicorn.Config:
    """Say how to serve an app over these connections."""
    if loop == "auto":
        loop = "asyncio" if sys.platform == "win32" else "uvloop"
    protocol: Any = partial(Connection, connections)
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        loop=loop,
        log_config=None,  # its lines go through our own log
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=math.ceil(shutdown_seconds),
    )


class Server(uvicorn.Server):
    """Checks its connections regularly."""

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self._connections = connections

    async def on_tick(self, counter: int) -> bool:
        """Check the connections; uvicorn calls this ten times a second."""
        if counter % TICKS_TO_A_LOOK == 0:
            self._connections.look(monotonic())
        return await super().on_tick(counter)
