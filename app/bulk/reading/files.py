"""The files of a history: which they are, whose samples they hold, and whether they fit together."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from app.bulk.reading.blocks import Block
from app.bulk.reading.csv import CsvFile
from app.replay.reading.cells import BadTable
from app.replay.reading.columns import Columns
from app.replay.reading.lines import Form
from app.replay.reading.table import Meaning
from app.streams.errors import InvalidStreamId
from app.streams.ids import checked_stream_id

ENDINGS: Final = (".csv", ".csv.gz", ".parquet")


class File(Protocol):
    """A file of samples; row is what it calls its rows."""

    row: str
    path: str

    def survey(self) -> tuple[Sequence[str], list[str]]:
        """Look through it; give its features, and what was guessed. Raises BadTable."""

    def blocks(self, stream: str, features: Sequence[str]) -> Iterator[Block]:
        """Give its rows, with these features; the stream is for rows that name none. Raises BadTable."""


@dataclass(frozen=True)
class Files:
    """What is to be read, in this order; `stream` is for all rows, else a column or the name of a file tells it."""

    paths: Sequence[Path]
    columns: Columns
    meaning: Meaning
    form: Form
    stream: str | None = None
    _opened: dict[int, File] = field(default_factory=dict, init=False)

    def open(self, number: int) -> File:
        """Give one of the files, which knows what its survey found."""
        if number not in self._opened:
            self._opened[number] = self._open(number)
        return self._opened[number]

    def _open(self, number: int) -> File:
        path = str(self.paths[number])
        if path.endswith(".parquet"):
            from app.bulk.reading.parquet import ParquetFile

            return ParquetFile(path, self.columns, self.meaning)
        return CsvFile(path, self.columns, self.meaning, self.form)

    def stream_of(self, number: int) -> str:
        """Give the stream of rows that name none."""
        return self.stream or name_of(self.paths[number])

    def survey(self) -> tuple[Sequence[str], list[str]]:
        """Look through all of them; give their features, and notes. Raises BadTable, with the name of the file."""
        self._refuse_bad_names()
        features, notes = None, list[str]()
        for number, path in enumerate(self.paths):
            with naming(path):
                own, said = self.open(number).survey()
            if features is not None and set(own) != set(features):
                raise BadTable(f"{path} has the features {', '.join(own)}, {self.paths[0]} has {', '.join(features)}")
            features = features or own
            notes += [f"{path}: {note}" for note in said]
        assert features is not None
        return features, notes

    def _refuse_bad_names(self) -> None:
        if self.stream or self.columns.stream:
            return
        taken: dict[str, Path] = {}
        for path in self.paths:
            name = name_of(path)
            try:
                checked_stream_id(name)
            except InvalidStreamId as error:
                raise BadTable(f"{path}: the stream {name!r} must be {error.limit}; --stream names another") from None
            if name in taken:
                both = f"{taken[name]} and {path} would both be stream {name}"
                raise BadTable(f"{both}; --stream-column or --stream says whose samples they hold")
            taken[name] = path

    def blocks(self, features: Sequence[str]) -> Iterator[tuple[int, Block]]:
        """Give the rows of all files, each block with the number of its file. Raises BadTable, with its name."""
        for number, path in enumerate(self.paths):
            with naming(path):
                for block in self.open(number).blocks(self.stream_of(number), features):
                    yield number, block

    def place(self, file: int, row: int) -> str:
        """Say where a row stands."""
        return f"{self.paths[file]}: {self.open(file).row} {row}"


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say in which file something is wrong."""
    try:
        yield
    except BadTable as error:
        if str(path) in str(error):
            raise
        raise BadTable(f"{path}: {error}") from None


def name_of(path: Path) -> str:
    """Give the stream that a file is called after."""
    return path.name.removesuffix(".gz").rpartition(".")[0]


def find_files(given: Sequence[Path]) -> list[Path]:
    """Give the files, those of folders in the order of their names. Raises BadTable if there are none."""
    found: list[Path] = []
    for path in given:
        if path.is_dir():
            inside = (one for one in sorted(path.rglob("*")) if one.name.endswith(ENDINGS))
            found += [one for one in inside if not is_hidden(one.relative_to(path))]
        elif not path.is_file():
            raise BadTable(f"there is no file or folder {path}")
        elif not path.name.endswith(ENDINGS):
            raise BadTable(f"{path} does not end with {', '.join(ENDINGS)}")
        else:
            found.append(path)
    if not found:
        raise BadTable(f"no file that ends with {', '.join(ENDINGS)} in {', '.join(map(str, given))}")
    return found


def is_hidden(path: Path) -> bool:
    """Tell what engines write beside their data."""
    return any(part.startswith((".", "_")) for part in path.parts)
