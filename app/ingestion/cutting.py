"""Cuts a stream of bytes into records as they are written: lines, or values of JSON over any number of lines."""

import json
from codecs import BOM_UTF8, getincrementaldecoder
from dataclasses import dataclass
from typing import Final, Protocol

LONGEST: Final = 262_144
"""Characters of a record that a service takes at most."""
EXCERPT: Final = 60
BETWEEN: Final = set(" \t\r\n,")
ON_ONE_LINE: Final = str.maketrans("\r\n", "  ")
"""Within a record of JSON a line can only end where a blank may stand."""


class BadInput(ValueError):
    """What was read is no stream of records."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it is written, on one line, and the line of the input that it began on, from 1."""

    line: int
    text: bytes


class Cutter(Protocol):
    """Takes bytes as they come, and gives the records that are complete."""

    def feed(self, chunk: bytes) -> list[Record]:
        """Take the next bytes."""
        ...

    def finish(self) -> list[Record]:
        """Give what is left at the end."""
        ...


def cutter_for(start: bytes) -> Cutter:
    """Choose by the first bytes: an array and records over several lines are JSON, anything else is lines."""
    text = start.removeprefix(BOM_UTF8).lstrip()
    if text.startswith(b"["):
        return JsonCutter()
    first, newline, _ = text.partition(b"\n")
    return JsonCutter() if newline and text.startswith(b"{") and not _is_json(first) else LineCutter()


class LineCutter:
    """Takes each line that is not empty as a record; whether it is one, the service says."""

    def __init__(self) -> None:
        self._line, self._rest = 0, b""

    def feed(self, chunk: bytes) -> list[Record]:
        if len(self._rest) > LONGEST:
            raise BadInput(f"line {self._line + 1} is longer than {LONGEST} bytes")
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [record for line in lines if (record := self._next(line)).text]

    def finish(self) -> list[Record]:
        rest, self._rest = self._rest, b""
        return [record] if (record := self._next(rest)).text else []

    def _next(self, line: bytes) -> Record:
        self._line += 1
        return Record(self._line, line.removeprefix(BOM_UTF8).strip())


class JsonCutter:
    """Takes each element of an array, or each value of several, as a record."""

    def __init__(self) -> None:
        self._decoder = json.JSONDecoder()
        self._bytes = getincrementaldecoder("utf-8-sig")()
        self._text, self._at, self._line, self._is_begun = "", 0, 1, False

    def feed(self, chunk: bytes) -> list[Record]:
        if len(self._text) - self._at > LONGEST:
            raise BadInput(f"line {self._line}: no record ends within {LONGEST} characters")
        self._text = self._text[self._at :] + self._decoded(chunk)
        self._at = 0
        if not self._is_begun and self._text:
            self._is_begun = True
            self._skip_to(len(self._text) - len(self._text.lstrip()))
            self._skip_to(self._at + self._text.startswith("[", self._at))
        found = list[Record]()
        while (record := self._next()) is not None:
            found.append(record)
        return found

    def finish(self) -> list[Record]:
        self._decoded(b"", is_end=True)
        if (left := self._text[self._at :].rstrip()) not in ("", "]"):
            raise BadInput(f"line {self._line}: no JSON record: {left[:EXCERPT]!r}")
        return []

    def _next(self) -> Record | None:
        """Give the next record if it is complete; of an object that is sure, for it ends with a brace."""
        while self._text[self._at : self._at + 1] in BETWEEN:
            self._skip_to(self._at + 1)
        if not self._text.startswith("{", self._at):
            return None
        try:
            _, end = self._decoder.raw_decode(self._text, self._at)
        except (ValueError, RecursionError):
            return None
        record = Record(self._line, self._text[self._at : end].translate(ON_ONE_LINE).encode())
        self._skip_to(end)
        return record

    def _skip_to(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end

    def _decoded(self, chunk: bytes, *, is_end: bool = False) -> str:
        try:
            return self._bytes.decode(chunk, is_end)
        except UnicodeDecodeError:
            raise BadInput(f"after line {self._line}: no UTF-8") from None


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
