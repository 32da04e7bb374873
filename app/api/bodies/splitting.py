"""Splits a body into lines, or a long JSON array into pieces that are quick to decode, without decoding it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

PIECE_BYTES, PIECE_ELEMENTS = 65_536, 4_096
ELEMENT_BYTES = 262_144
"""No element may be longer: 256 features with names of 128 characters take less."""
MOST_AT_ONCE = 100_000

TEXT = rb'"(?:[^"\\]++|\\.)*+"'


def element(depth: int) -> re.Pattern[bytes]:
    """Match a string, a number or literal, or an array or object nested so deep.

    Where an element ends is sure only in valid JSON.
    """
    inside = rb'[^"\[\]{}]++|' + TEXT
    nested = rb"[\[{](?:" + inside + rb")*+[\]}]"
    for _ in range(depth - 1):
        nested = rb"[\[{](?:" + inside + b"|" + nested + rb")*+[\]}]"
    return re.compile(rb"\s*+(?:" + nested + b"|" + TEXT + rb'|[^\s,"\[\]{}]++)\s*+', re.DOTALL)


FLAT = element(1)
LINE_END = re.compile(rb"\n\s*+")
COMMA, END = b",]"
_RAW = msgspec.json.Decoder(msgspec.Raw)
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Piece:
    """Some elements of an array that follow each other, and the place of the first."""

    first: int
    elements: list[bytes]

    def __len__(self) -> int:
        return len(self.elements)

    def array(self) -> bytes:
        """Give the elements as an array."""
        return b"[" + b",".join(self.elements) + b"]"


class TooLong(ValueError):
    """An element is too long, or is nested in a very long array."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


def lines_of(body: bytes, most: int) -> list[bytes]:
    """Give the lines that are not empty; one more than the most if there are more."""
    body = body.strip()
    return LINE_END.split(body, most) if body else []


def holds_lines(body: bytes) -> bool:
    """Tell whether a body is lines of JSON, whatever its type says: so Fluent Bit sends its json_lines."""
    first, _, rest = body.lstrip().partition(b"\n")
    if not (first.startswith(b"{") and rest.strip()):
        return False
    try:
        _RAW.decode(first)
    except (ValueError, RecursionError):
        return False
    return True


def split(array: bytes) -> Iterator[Piece]:
    """Give the elements of a valid JSON array in pieces. Raises TooLong."""
    first, elements, size = 0, list[bytes](), 0
    for found in elements_of(array):
        elements.append(found)
        size += len(found)
        if size >= PIECE_BYTES or len(elements) == PIECE_ELEMENTS:
            yield Piece(first, elements)
            first, elements, size = first + len(elements), [], 0
    if elements:
        yield Piece(first, elements)


def elements_of(array: bytes, form: re.Pattern[bytes] = FLAT) -> Iterator[bytes]:
    """Give the elements one by one; a very long array may hold only those of this form."""
    return decoded_elements(array) if array.count(b",") <= MOST_AT_ONCE else scanned_elements(array, form)


def decoded_elements(array: bytes) -> Iterator[bytes]:
    """Split a short array by decoding it."""
    for place, raw in enumerate(_RAWS.decode(array)):
        if len(memoryview(raw)) > ELEMENT_BYTES:
            raise TooLong(place)
        yield bytes(raw)


def scanned_elements(array: bytes, form: re.Pattern[bytes] = FLAT) -> Iterator[bytes]:
    """Find the elements of a long array one by one, only as many as are needed."""
    n, position = 0, 1
    while array[position - 1] != END:
        found = form.match(array, position, position + ELEMENT_BYTES)
        if found is None or array[found.end()] not in (COMMA, END):
            raise TooLong(n)
        yield found[0]
        n, position = n + 1, found.end() + 1
