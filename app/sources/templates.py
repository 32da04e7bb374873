"""Templates: texts in which {path} stands for a value of a record."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

Leaves = Mapping[str, Any]
"""The values of a record by their paths."""
PLACE: Final = re.compile(r"\{([^{}]*)\}")
REST: Final = ".*"
NOT_PLAIN: Final = re.compile(r"[^A-Za-z0-9._-]")
STREAM_LITERAL: Final = re.compile(r"[A-Za-z0-9._:-]*")


class MissingKey(LookupError):
    """A record lacks a key that a template needs."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class Template:
    """A text with places to fill. {a.b} is the value at a.b; {a.*} all others within a, each after a colon, in order.

    >>> Template("{host}:{name}{tags.*}").filled({"host": "web", "name": "cpu", "tags.cpu": "cpu0", "tags.dc": "eu"})
    'web:cpu:cpu0:eu'
    """

    def __init__(self, text: str) -> None:
        self.literals: list[str] = PLACE.split(text)[::2]
        self.paths: list[str] = PLACE.findall(text)
        self._own = frozenset(self.paths)

    def filled(self, leaves: Leaves, written: Callable[[str], str] = str) -> str:
        """Fill in the values, each as it is to be written. Raises MissingKey."""
        parts = [self.literals[0]]
        for path, literal in zip(self.paths, self.literals[1:], strict=True):
            parts += [self._value(path, leaves, written), literal]
        return "".join(parts)

    def _value(self, path: str, leaves: Leaves, written: Callable[[str], str]) -> str:
        if path.endswith(REST):
            within = path.removesuffix("*")
            others = sorted(leaf for leaf in leaves if leaf.startswith(within) and leaf not in self._own)
            return "".join(f":{written(text_of(leaves[leaf]))}" for leaf in others)
        value = leaves.get(path)
        if value is None or isinstance(value, list):
            raise MissingKey(path)
        return written(text_of(value))


def text_of(value: Any) -> str:
    """Write a value as JSON does, a text without quotes."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def plain(text: str) -> str:
    """Write a text so that it can be part of a stream's id: other characters become _ and their code.

    >>> plain("/var/log")
    '_2Fvar_2Flog'
    """
    return NOT_PLAIN.sub(lambda found: "".join(f"_{byte:02X}" for byte in found[0].encode()), text)
