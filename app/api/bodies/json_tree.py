"""Reads JSON without loss: it finds names given twice in an object, and numbers that no double holds."""

import json
import math
from typing import Any

Place = tuple[str, Any]
REPEATED = "given once in its object"


class Object(dict[str, Any]):
    """An object, and the first of its names that occurs twice; its value is the last one given."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated = None if len(self) == len(pairs) else first_repeated(pairs)


class Unheld:
    """A number too large for a double, NaN or an infinity, as it was written."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


INNER = (list, dict, Unheld)


def first_repeated(pairs: list[tuple[str, Any]]) -> str | None:
    """Give the first name that occurs twice."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    return None


def read_tree(text: bytes) -> Any:
    """Read JSON. Raises ValueError if it is invalid, RecursionError if it is nested too deep."""
    tree = json.loads(
        text.decode(), object_pairs_hook=Object, parse_int=whole, parse_float=number, parse_constant=Unheld
    )
    if b"\\u" in text:
        refuse_half_characters(tree)
    return tree


def refuse_half_characters(tree: Any) -> None:
    """Raise ValueError for a text with one half of a surrogate pair, which no UTF-8 can hold."""
    waiting = [tree]
    while waiting:
        match waiting.pop():
            case str() as text:
                try:
                    text.encode()
                except UnicodeEncodeError:
                    raise ValueError("a surrogate without its other half") from None
            case dict() as node:
                waiting += [*node, *node.values()]
            case list() as node:
                waiting += node


def whole(text: str) -> int | Unheld:
    """Read a whole number."""
    return Unheld(text) if math.isinf(float(text)) else int(text)


def number(text: str) -> float | Unheld:
    """Read a number."""
    value = float(text)
    return Unheld(text) if math.isinf(value) else value


def repeated_name(tree: Any) -> Place | None:
    """Give the path of the first name that occurs twice in its object, and its last value."""
    waiting = [("", tree)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, Object) and node.repeated is not None:
            return f"{path}.{node.repeated}", node[node.repeated]
        waiting += reversed(inner(path, node))
    return None


def unheld_number(tree: Any) -> Place | None:
    """Give the path of the first number that no double holds, and the number."""
    waiting = [("", tree)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, Unheld):
            return path, node
        waiting += reversed(inner(path, node))
    return None


def inner(path: str, node: Any) -> list[Place]:
    """Give the arrays, objects and unheld numbers directly inside a value."""
    match node:
        case dict():
            return [(f"{path}.{name}", value) for name, value in node.items() if isinstance(value, INNER)]
        case list():
            return [(f"{path}[{i}]", value) for i, value in enumerate(node) if isinstance(value, INNER)]
    return []
