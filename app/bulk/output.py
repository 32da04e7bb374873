"""Writes what a partition of streams gives, as Parquet files that appear once they are complete."""

from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from app.bulk.backfill import Columns
from app.bulk.tables import TABLES, table_of

GROUP_BYTES: Final = 16_000_000
GROUP_TABLES: Final = 256
UNFINISHED: Final = ".unfinished"


class Output:
    """The files of one part in the folders scores, incidents and images."""

    def __init__(self, folder: Path, part: int) -> None:
        self._paths = {name: folder / name / f"part-{part:05d}.parquet" for name in TABLES}
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._waiting: dict[str, list[pa.Table]] = {name: [] for name in TABLES}

    def __enter__(self) -> Self:
        for name, path in self._paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(path.name + UNFINISHED)
            self._writers[name] = pq.ParquetWriter(unfinished, TABLES[name], compression="zstd")
        return self

    def write(self, name: str, columns: Columns) -> None:
        """Add rows to a table."""
        waiting = self._waiting[name]
        waiting.append(table_of(columns, TABLES[name]))
        if len(waiting) >= GROUP_TABLES or sum(table.nbytes for table in waiting) >= GROUP_BYTES:
            self._flush(name)

    def _flush(self, name: str) -> None:
        if waiting := self._waiting[name]:
            self._writers[name].write_table(pa.concat_tables(waiting))
            waiting.clear()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, path in self._paths.items():
            if error is None:
                self._flush(name)
            self._writers[name].close()
            unfinished = path.with_name(path.name + UNFINISHED)
            if error is None:
                unfinished.rename(path)
            else:
                unfinished.unlink(missing_ok=True)
