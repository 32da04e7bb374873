"""CSV files as blocks."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from app.bulk.reading.blocks import BLOCK_ROWS, Block, Names
from app.replay.reading.columns import Columns
from app.replay.reading.lines import Form
from app.replay.reading.table import Meaning, Row, open_table


class CsvFile:
    """One .csv or .csv.gz file."""

    row = "line"

    def __init__(self, path: str, columns: Columns, meaning: Meaning, form: Form) -> None:
        self.path = path
        self._opening = path, columns, meaning, form
        self._features: Sequence[str] = columns.features

    def survey(self) -> tuple[Sequence[str], list[str]]:
        """Look through the file; give its features, and what was guessed. Raises BadTable."""
        with open_table(*self._opening) as table:
            return table.features, table.survey().notes

    def blocks(self, stream: str, features: Sequence[str]) -> Iterator[Block]:
        """Give the rows, with these features in order; the stream is for rows that name none. Raises BadTable."""
        names = Names(self.row)
        with open_table(*self._opening) as table:
            table.choose(features)
            rows = iter(table)
            while some := list(itertools.islice(rows, BLOCK_ROWS)):
                block = block_of(some, stream, named=table.columns.stream is not None)
                names.check(block.streams.tolist(), block.ids.tolist(), block.rows.tolist())
                yield block


def block_of(rows: Sequence[Row], stream: str, *, named: bool) -> Block:
    """Put rows together."""
    streams = [row.stream for row in rows] if named else [stream] * len(rows)
    return Block(
        np.array(streams, np.object_),
        np.array([row.values for row in rows], np.float64),
        np.array([row.timestamp for row in rows], np.float64),
        np.array([row.id or None for row in rows], np.object_),
        np.array([0 if row.label is None else 1 if row.label else -1 for row in rows], np.int8),
        np.array([row.known for row in rows], np.float64),
        np.array([row.line for row in rows], np.int64),
    )
