"""Sends the images in a folder of results to a service, and remembers which it has taken."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from app.replay.reading.cells import BadTable


class Refused(Exception):
    """A service does not take an image; the message says why."""


@dataclass
class Imported:
    """What became of the images: how many were taken now, how many before, and why streams were refused."""

    now: int = 0
    before: int = 0
    refused: dict[str, str] = field(default_factory=dict)


class ImageFolder:
    """The images of a backfill. Raises BadTable if there are none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.imported = Imported()
        self._files = sorted((folder / "images").glob("*.parquet"))
        if not self._files:
            raise BadTable(f"{folder} holds no images: it is no folder that a backfill has written")

    def count(self) -> int:
        """Count the streams."""
        return sum(self._rows(path) for path in self._files)

    def import_to(self, url: str, send: Callable[[str, bytes], object], done: Callable[[int], object]) -> None:
        """Send all images that the service at this URL has not taken yet; `send` raises Refused, or stops it all.

        An import that was stopped goes on where it was: the folder remembers what was taken.
        """
        said, memory = self.imported, self._folder / f"imported-{crc32(url.encode()):08x}.txt"
        taken = set(memory.read_text().splitlines()) if memory.exists() else set()
        said.before = len(taken)
        with memory.open("a") as file:
            for stream, image in self._images(taken):
                try:
                    send(stream, image)
                except Refused as refusal:
                    said.refused[stream] = str(refusal)
                else:
                    said.now += 1
                    file.write(f"{stream}\n")
                    file.flush()
                done(1)

    def _images(self, without: set[str]) -> Iterator[tuple[str, bytes]]:
        for path in self._files:
            try:
                with pq.ParquetFile(path) as file:
                    for group in range(file.num_row_groups):
                        names = file.read_row_group(group, columns=["stream"]).column(0).to_pylist()
                        if set(names) <= without:
                            continue
                        images = file.read_row_group(group, columns=["image"]).column(0)
                        yield from (
                            (n, image.as_py()) for n, image in zip(names, images, strict=True) if n not in without
                        )
            except (pa.ArrowException, OSError, KeyError) as error:
                raise BadTable(f"{path} cannot be read: {error}") from None

    @staticmethod
    def _rows(path: Path) -> int:
        try:
            return int(pq.read_metadata(path).num_rows)
        except (pa.ArrowException, OSError) as error:
            raise BadTable(f"{path} cannot be read: {error}") from None
