"""`itan serve`: run the service in this process."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.connection import FAILED, MISUSED, fail
from app.commands.settings import reason
from app.logs.choices import LogLevel

if TYPE_CHECKING:
    from fastapi import FastAPI

    from app.settings import Settings

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
OTHER_VARIABLES = {"ITAN_URL", "ITAN_KEY"}
FORMER_VARIABLES = {"ITAN_SNAPSHOT_EVERY_EVENTS": "see ITAN_SNAPSHOT_REPLAY_SECONDS"}
"""Settings of earlier versions, and what is there instead."""
GC_THRESHOLDS = 20_000, 20, 20
"""Python's own, 700, 10, 10, look through all streams during most requests for a thousand of them, for 0.15 s."""

logger = logging.getLogger(__name__)


def serve(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on.", show_default="ITAN_HOST or 127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on; 0 takes a free one.", show_default="ITAN_PORT or 8000")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="sqlite:///file, redis://host, redis+sentinel://, redis+cluster:// or memory://.",
            show_default="ITAN_STORE or sqlite:///itan.db",
        ),
    ] = None,
    log_level: Annotated[
        LogLevel | None, typer.Option(help="How much to log.", show_default="ITAN_LOG_LEVEL or info")
    ] = None,
) -> None:
    """Serve over HTTP until stopped. Flags override the ITAN_ settings of the environment."""
    # nothing is open yet; an exception would be lost if it came in a callback of an import
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    _limit_threads()
    given = {"host": host, "port": port, "store": store, "log_level": log_level}
    flags = {name: value for name, value in given.items() if value is not None}
    try:
        settings = _settings(flags)
        app = _create_app(settings)
    except ValueError as error:
        raise fail(reason(error, flags), MISUSED) from None
    _run(app, _bind(settings.host, settings.port), settings.shutdown_seconds)


def _limit_threads() -> None:
    # the products here are small, more threads only wait for each other; read once, when numpy is imported
    for name in BLAS_THREADS:
        os.environ.setdefault(name, "1")


def _settings(flags: dict[str, Any]) -> "Settings":
    from app.logs.pipeline import set_up
    from app.settings import Settings

    settings = Settings(**flags)
    settings.refuse_open_bind()
    set_up(settings.log_level, settings.log_format, settings.worker)
    _warn_of_unknown(set(Settings.model_fields))
    return settings


def _warn_of_unknown(fields: set[str]) -> None:
    """A misspelt ITAN_API_KEY must not leave a service open without a word."""
    from app.secret_files import secret_files

    known = {f"ITAN_{name.upper()}" for name in fields} | OTHER_VARIABLES
    files = {name for name in secret_files() if name.upper().startswith("ITAN_") and name.upper() not in known}
    for name in sorted({name for name in os.environ if name.startswith("ITAN_") and name not in known} | files):
        logger.warning("%s is not a setting and has no effect; %s", name, FORMER_VARIABLES.get(name, "is it misspelt?"))


def _create_app(settings: "Settings") -> "FastAPI":
    from app.main import create_app

    return create_app(settings)


def _bind(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        raise fail(f"cannot listen on {host}:{port}: {error.strerror}", FAILED) from None
    return listener


class StartFailure(logging.Filter):
    """Keeps the reason when the store cannot be opened, which uvicorn would show as a traceback."""

    reason = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let everything pass but that traceback and what comes after it."""
        last_line = record.getMessage().strip().rpartition("\n")[2]
        if last_line.startswith("app.storage."):
            self.reason = last_line.partition(": ")[2]
        return not self.reason


def _run(app: "FastAPI", listener: socket.socket, shutdown_seconds: float) -> None:
    from app.protocol import Connections, Limits, Server, configure

    class Announcing(Server):
        """Says where it listens once it does, and turns unready as soon as it is told to stop.

        After SIGTERM requests may still come until the proxy has noticed; another signal ends it without that.
        """

        is_told = False

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            service.stop_soon()
            drain_seconds = service.settings.drain_seconds if sig == signal.SIGTERM and not self.is_told else 0.0
            self.is_told = True
            exit_now = partial(super().handle_exit, sig, frame)
            if drain_seconds:
                loop = asyncio.get_running_loop()
                loop.call_soon_threadsafe(loop.call_later, drain_seconds, exit_now)
            else:
                exit_now()

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            # modules and routes stay: each full collection would look through them for 50 ms while nobody is answered
            gc.collect()
            gc.freeze()
            gc.set_threshold(*GC_THRESHOLDS)
            print("itan serves", _url(listener), flush=True)

    service = app.state.service
    limits = Limits.of(service.settings)
    if warning := limits.warning():
        logger.warning("%s", warning)
    connections = Connections(limits, service.metrics)
    start = StartFailure()
    logging.getLogger("uvicorn.error").addFilter(start)
    # SIGTERM is an ordinary end, so it exits with 0: uvicorn raises it again after its clean shutdown
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        Announcing(configure(app, connections, shutdown_seconds), connections).run(sockets=[listener])
    except KeyboardInterrupt:
        # uvicorn has shut down cleanly by then
        return
    except SystemExit:
        if start.reason:
            raise fail(start.reason) from None
        raise
    finally:
        gc.freeze()  # all is kept by now: to look through every object once more takes most of a second


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
