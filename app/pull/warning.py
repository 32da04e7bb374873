"""Warnings that would come at each step."""

import logging
from typing import Final

MOST: Final = 1000

logger = logging.getLogger(__name__)


class WarnOnce:
    """Logs each text once, until there have been many."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, text: str) -> None:
        """Log a text, unless it was logged before."""
        if text not in self._said:
            if len(self._said) >= MOST:
                self._said.clear()
            self._said.add(text)
            logger.warning("%s", text)
