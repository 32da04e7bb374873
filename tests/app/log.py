"""A pipeline whose lines can be read."""

import io
import json
from typing import Any

from app.logs.choices import LogFormat, LogLevel
from app.logs.pipeline import set_up


class Log:
    """What was logged since it was last read."""

    def __init__(self) -> None:
        self._file = io.BytesIO()

    def set_up(self, level: LogLevel = LogLevel.INFO, form: LogFormat = LogFormat.JSON, worker: str = "") -> None:
        set_up(level, form, worker, self._file)

    def text(self) -> str:
        text = self._file.getvalue().decode("ascii")
        self._file.seek(0)
        self._file.truncate()
        return text

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text().splitlines()]
