"""The lines of a CSV file as cells: its separator, its encoding, its header."""

import csv
import gzip
import io
import itertools
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from app.replay.reading.cells import BadTable, is_number, quoted
from app.replay.reading.times import is_time

LOOK_AHEAD_ROWS: Final = 1000
SNIFFED_LINES: Final = 20
SEPARATORS: Final = {"comma": ",", "semicolon": ";", "tab": "\t"}

Line = tuple[int, list[str]]


@dataclass(frozen=True)
class Form:
    """How the file is written; the separator is guessed if it is not given, the header is its first line."""

    separator: str | None = None
    encoding: str = "utf-8"
    header: tuple[str, ...] = ()


class Lines:
    """The lines after the header, as cells with their line numbers.

    Those of a file can be read twice, so all of them can be looked at before any is used; those of a pipe cannot.
    """

    def __init__(self, start: Callable[[], Iterable[str]], form: Form, *, can_repeat: bool) -> None:
        self._start = start
        self._can_repeat = can_repeat
        self._has_header_line = not form.header
        texts = iter(start())
        sniffed = list(itertools.islice(texts, SNIFFED_LINES))
        self.separator = form.separator or guess_separator(sniffed)
        self._rest = self._cells(itertools.chain(sniffed, texts))
        first = next(self._rest, (1, []))[1] if self._has_header_line else list(form.header)
        self.header = named(first)
        self._ahead: list[Line] = []

    @property
    def separator_name(self) -> str:
        """Give the separator as people call it."""
        return next((name for name, character in SEPARATORS.items() if character == self.separator), self.separator)

    @property
    def can_repeat(self) -> bool:
        """Tell whether all lines can be looked at beforehand."""
        return self._can_repeat

    def ahead(self) -> Iterable[Line]:
        """Give the lines that can be looked at before they are used."""
        if self._can_repeat:
            return self._again()
        self._ahead += itertools.islice(self._rest, LOOK_AHEAD_ROWS)
        return self._ahead

    def __iter__(self) -> Iterator[Line]:
        return self._again() if self._can_repeat else itertools.chain(self._ahead, self._rest)

    def _again(self) -> Iterator[Line]:
        lines = self._cells(self._start())
        return itertools.islice(lines, 1, None) if self._has_header_line else lines

    def _cells(self, texts: Iterable[str]) -> Iterator[Line]:
        reader = csv.reader(texts, delimiter=self.separator, strict=True)
        last = 0
        try:
            for cells in reader:
                last = reader.line_num
                if cells:
                    yield last, cells
        except csv.Error as error:
            # an open quote takes in all lines after it
            raise BadTable(f"line {last + 1} cannot be read as CSV: {error}; are its quotes closed?") from None


def separator_of(text: str | None) -> str | None:
    """Give the character of a separator's name. Raises ValueError.

    >>> separator_of("tab"), separator_of("|")
    ('\\t', '|')
    """
    character = SEPARATORS.get(text or "", text)
    if character is not None and (len(character) != 1 or character in '"\r\n'):
        raise ValueError(f"--separator {text!r} is not {', '.join(SEPARATORS)} or another character")
    return character


def guess_separator(texts: Sequence[str]) -> str:
    """Give the separator that makes the most columns, and as many in each line if there is such a one.

    >>> guess_separator(["a;b\\n", "1,5;2,5\\n"])
    ';'
    """
    widths = {character: _widths(texts, character) for character in SEPARATORS.values()}
    return max(widths, key=lambda c: (len(set(widths[c])) == 1 and widths[c][0] > 1, widths[c][:1]))


def _widths(texts: Sequence[str], separator: str) -> list[int]:
    try:
        return [len(cells) for cells in csv.reader(texts, delimiter=separator) if cells]
    except csv.Error:
        return []


def named(header: Sequence[str]) -> list[str]:
    """Check the names of the columns; one without a name is called as pandas calls it."""
    names = [name.strip() or f"Unnamed: {place}" for place, name in enumerate(header)]
    if not names or not any(name.strip() for name in header):
        raise BadTable("the file is empty: its first line must name the columns")
    if held := [name for name in names if _is_data(name)] or (names if all(map(is_number, names)) else []):
        said = f"the first line must name the columns, but it holds {quoted(held[0])}"
        raise BadTable(f"{said}; if the file has no such line, name them by --header a,b,...")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadTable(f"these columns appear twice: {', '.join(twice)}; rename one of each in the first line")
    return names


def _is_data(name: str) -> bool:
    """Tell what no column is called: a number with decimals, or a time."""
    return (is_number(name) and not name.isdecimal()) or is_time(name)


@contextmanager
def open_lines(path: str, form: Form) -> Iterator[Lines]:
    """Open a .csv or .csv.gz file, or stdin for "-"; BadTable, also later, with the file's name."""
    with ExitStack() as opened:
        try:
            yield Lines(lambda: opened.enter_context(_open(path, form.encoding)), form, can_repeat=_is_file(path))
        except BadTable as error:
            raise BadTable(f"{_called(path)}: {error}") from None
        except UnicodeError as error:
            raise BadTable(f"{_called(path)}: {_not_decoded(path, form.encoding, error)}") from None
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise BadTable(f"{_called(path)} cannot be read: the packed file is damaged ({error})") from None


def _open(path: str, encoding: str) -> IO[str]:
    # with a byte order mark or without
    encoding = "utf-8-sig" if encoding == "utf-8" else encoding
    if path == "-":
        return io.TextIOWrapper(sys.stdin.buffer, encoding=encoding, newline="")
    if path.endswith(".gz"):
        return gzip.open(path, "rt", encoding=encoding, newline="")
    return Path(path).open(encoding=encoding, newline="")


def _is_file(path: str) -> bool:
    return path != "-" and Path(path).is_file()


def _called(path: str) -> str:
    return "stdin" if path == "-" else path


def _not_decoded(path: str, encoding: str, error: UnicodeError) -> str:
    said = f"it is not written in {encoding} ({error})"
    # in utf-16 a line does not end with one byte
    if "\n".encode(encoding) == b"\n" and _is_file(path) and (line := _first_not_decoded(path, encoding)):
        said = f"line {line[0]} is not written in {encoding}: {line[1][:60]!r}"
    return f"{said}; name its encoding, such as --encoding latin-1 or --encoding utf-16"


def _first_not_decoded(path: str, encoding: str) -> tuple[int, bytes] | None:
    with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
        for position, line in enumerate(file, start=1):
            try:
                line.decode(encoding)
            except UnicodeError:
                return position, line
    return None
