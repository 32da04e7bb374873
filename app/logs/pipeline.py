"""Sets up logging for the whole process."""

import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from time import time_ns
from typing import BinaryIO

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from app.logs.choices import LogFormat, LogLevel
from app.logs.context import known
from app.logs.rendering import render_console, render_json

WRITE_URLS = ("httpx2", "httpcore2")
"""Loggers that write a line for each request that this process sends, with its URL: that of a chat is a secret."""
RENDERERS: dict[LogFormat, Processor] = {LogFormat.JSON: render_json, LogFormat.CONSOLE: render_console}


def set_up(level: LogLevel, form: LogFormat | None, worker: str = "", file: BinaryIO | None = None) -> None:
    """Send all logs of this process to stderr in one form; by default the console's if stderr is a terminal, else JSON.

    Not to stdout: a command prints its result there, and other programs read it.
    """
    form = form or (LogFormat.CONSOLE if sys.stderr.isatty() else LogFormat.JSON)
    lines = Lines(file or sys.stderr.buffer)
    structlog.configure(
        processors=[Describe(worker), structlog.processors.format_exc_info, RENDERERS[form]],
        wrapper_class=structlog.make_filtering_bound_logger(level.number),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=level.number, handlers=[Forward(structlog.get_logger())], force=True)
    logging.captureWarnings(capture=True)
    for name in WRITE_URLS:
        logging.getLogger(name).setLevel(logging.WARNING)


class Lines:
    """Writes whole lines. A full disk or a closed pipe must cost a line, not a request."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def msg(self, line: bytes) -> None:
        """Write a line."""
        with suppress(OSError, ValueError):
            self._file.write(line + b"\n")
            self._file.flush()

    debug = info = warning = error = critical = msg


class Describe:
    """Puts time, level and event first, then the worker, the request, and the rest."""

    def __init__(self, worker: str) -> None:
        self._who = {"worker": worker} if worker else {}

    def __call__(self, _: WrappedLogger, level: str, fields: EventDict) -> EventDict:
        first = {"timestamp": timestamp(), "level": level, "event": fields.pop("event")}
        return {**first, **self._who, **(known() or {}), **fields}


class Forward(logging.Handler):
    """Brings records of the standard library into the same pipeline, with their `extra={"stream": ...}`."""

    def __init__(self, logger: FilteringBoundLogger) -> None:
        super().__init__()
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record; a failure here must not reach its caller."""
        fields = {"logger": record.name, "exc_info": record.exc_info}
        if (stream := getattr(record, "stream", None)) is not None:
            fields["stream"] = stream
        try:
            self._logger.log(standard(record.levelno), record.getMessage(), **fields)
        except Exception:
            self.handleError(record)


def timestamp() -> str:
    """Give the time in UTC, to the millisecond."""
    seconds, milliseconds = divmod(time_ns() // 1_000_000, 1000)
    return f"{date_and_time(seconds)}.{milliseconds:03}Z"


@lru_cache(maxsize=1)
def date_and_time(seconds: int) -> str:
    """Write a second of the epoch, cached because many lines share one."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def standard(level: int) -> int:
    """Give the standard level at or below a level."""
    return max(logging.DEBUG, min(level, logging.CRITICAL) // 10 * 10)
