"""What an operator can choose about the log."""

import logging
from enum import StrEnum


class LogLevel(StrEnum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def number(self) -> int:
        """Give the level as a number of the standard library."""
        return logging.getLevelNamesMapping()[self.name]


class LogFormat(StrEnum):
    """The form of a line: for programs, or for people at a terminal."""

    JSON = "json"
    CONSOLE = "console"
