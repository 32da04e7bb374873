"""Cuts a long JSON array into pieces that are quick to decode, without decoding it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

PIECE_BYTES = 65_536
ELEMENT_BYTES = 262_144
"""No element may be longer: 256 features with names of 128 characters take less."""

# an array or object of strings and whatever is no bracket, a string, or a number or literal; where it ends is sure only
# in valid JSON
ELEMENT = re.compile(
    rb"""\s*+(?:[\[{](?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+[\]}]|"(?:[^"\\]++|\\.)*+"|[^\s,"\[\]{}]++)\s*+""",
    re.DOTALL,
)
EMPTY = re.compile(rb"\[\s*+\]")
COMMA, END = b",]"
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
    """An element too long, or nested in too long a rest, to be looked at in one go."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


def cut(array: bytes) -> Iterator[Piece]:
    """Give the elements of a valid JSON array in pieces, or raise TooLong."""
    first, elements, size = 0, list[bytes](), 0
    for element in elements_of(array):
        elements.append(element)
        size += len(element)
        if size >= PIECE_BYTES:
            yield Piece(first, elements)
            first, elements, size = first + len(elements), [], 0
    if elements:
        yield Piece(first, elements)


def elements_of(array: bytes) -> Iterator[bytes]:
    """Give the elements one by one. Nested ones, wrong wherever this is used, are only told apart in a short rest."""
    n, position = 0, 1
    if EMPTY.fullmatch(array):
        return
    while array[position - 1] != END:
        found = ELEMENT.match(array, position, position + ELEMENT_BYTES)
        if found is None or array[found.end()] not in (COMMA, END):
            if len(array) - position > ELEMENT_BYTES:
                raise TooLong(n)
            yield from map(bytes, _RAWS.decode(b"[" + array[position:]))
            return
        yield found[0]
        n, position = n + 1, found.end() + 1
