"""What an operator may choose about logs."""

import logging
from enum import StrEnum


class LogLevel(StrEnum):
    """How much is said on stderr."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def number(self) -> int:
        """Give the level as the standard library counts."""
        return logging.getLevelNamesMapping()[self.name]


class LogFormat(StrEnum):
    """How a line looks: for programs, or for a person at a terminal."""

    JSON = "json"
    CONSOLE = "console"
