"""Rows on disk, sorted by streams into parts: each part is then computed by one process, which need not hold it all."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa

from app.bulk.reading.blocks import Block
from app.bulk.rows import Rows

HELD_BYTES: Final = 256_000_000
"""The largest part that is sorted in memory."""
FAN_OUT: Final = 16


def schema_of(n_features: int) -> pa.Schema:
    """Describe the rows on disk."""
    values = [(f"x{i}", pa.float64()) for i in range(n_features)]
    return pa.schema(
        [
            ("stream", pa.string()),
            ("file", pa.int64()),
            ("row", pa.int64()),
            ("time", pa.float64()),
            ("id", pa.string()),
            ("label", pa.int8()),
            ("known", pa.float64()),
            *values,
        ]
    )


class Spill:
    """Writes rows into n parts, all rows of a stream into the same one, in the order in which they come."""

    def __init__(self, folder: Path, n_parts: int, n_features: int, salt: int = 0) -> None:
        self._folder, self._n, self._salt, self._schema = folder, n_parts, salt, schema_of(n_features)
        self._stack = ExitStack()
        self._writers: dict[int, pa.RecordBatchStreamWriter] = {}
        self._part_of: dict[str, int] = {}
        folder.mkdir(parents=True)

    def take(self, block: Block, file: int) -> None:
        """Write the rows of a block."""
        columns = [
            block.streams,
            np.full(len(block), file),
            block.rows,
            block.times,
            block.ids,
            block.label,
            block.known,
        ]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=False)]
        self.write(pa.RecordBatch.from_arrays([*arrays, *map(pa.array, block.X.T)], schema=self._schema))

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows as they stand on disk."""
        names = batch.column(0).dictionary_encode()
        parts = np.array([self._part(name) for name in names.dictionary.to_pylist()])[np.asarray(names.indices)]
        for part in np.unique(parts).tolist():
            self._writer(part).write_batch(batch.take(pa.array(np.flatnonzero(parts == part))))

    def _part(self, stream: str) -> int:
        if stream not in self._part_of:
            self._part_of[stream] = crc32(f"{self._salt} {stream}".encode()) % self._n
        return self._part_of[stream]

    def _writer(self, part: int) -> pa.RecordBatchStreamWriter:
        if part not in self._writers:
            path = self._folder / f"{part:05d}.arrow"
            self._writers[part] = self._stack.enter_context(pa.ipc.new_stream(str(path), self._schema))
        return self._writers[part]

    def close(self) -> list[Path]:
        """Give the files of the parts that have rows."""
        self._stack.close()
        return [self._folder / f"{part:05d}.arrow" for part in sorted(self._writers)]


def streams_in(part: Path, held_bytes: int = HELD_BYTES, depth: int = 0) -> Iterator[tuple[str, Iterable[Rows]]]:
    """Give the streams of a part, each with its rows in order; take the rows of one before the next."""
    if part.stat().st_size <= held_bytes:
        yield from _sorted(part)
        return
    names = {name for batch in _batches(part) for name in batch.column(0).unique().to_pylist()}
    if len(names) == 1:
        yield names.pop(), (rows_of(batch) for batch in _batches(part))
        return
    spill = Spill(part.with_suffix(f".{depth}"), FAN_OUT, _n_features(part), salt=depth + 1)
    for batch in _batches(part):
        spill.write(batch)
    part.unlink()
    for path in spill.close():
        yield from streams_in(path, held_bytes, depth + 1)


def _sorted(part: Path) -> Iterator[tuple[str, Iterable[Rows]]]:
    with pa.memory_map(str(part)) as file, pa.ipc.open_stream(file) as reader:
        table = reader.read_all()
    names = table.column(0).combine_chunks().dictionary_encode()
    indices = np.asarray(names.indices)
    order = np.argsort(indices, kind="stable")
    bounds = np.searchsorted(indices[order], np.arange(len(names.dictionary) + 1))
    for i, name in enumerate(names.dictionary.to_pylist()):
        chosen = table.take(pa.array(order[bounds[i] : bounds[i + 1]])).combine_chunks()
        yield name, [rows_of(batch) for batch in chosen.to_batches()]


def _batches(part: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(part)) as file, pa.ipc.open_stream(file) as reader:
        yield from reader


def _n_features(part: Path) -> int:
    with pa.memory_map(str(part)) as file, pa.ipc.open_stream(file) as reader:
        return len(reader.schema) - len(schema_of(0))


def rows_of(batch: pa.RecordBatch) -> Rows:
    """Give rows of one stream as they are observed."""
    columns: dict[str, Any] = {name: batch.column(name) for name in batch.schema.names}
    times, values = np.asarray(columns["time"]), [np.asarray(columns[f"x{i}"]) for i in range(len(columns) - 7)]
    ids = columns["id"]
    return Rows(
        np.column_stack(values),
        None if np.isnan(times).all() else times,
        () if ids.null_count == len(ids) else tuple(name or "" for name in ids.to_pylist()),
        np.asarray(columns["label"]),
        np.asarray(columns["known"]),
        np.column_stack([np.asarray(columns["file"]), np.asarray(columns["row"])]),
    )
