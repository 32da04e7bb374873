"""Reads records from a file or a pipe, and bundles them into requests."""

import gzip
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Final, cast

from app.ingestion.cutting import BadInput, Record, cutter_for

CHUNK_BYTES: Final = 65_536
PATIENCE_SECONDS: Final = 0.2
"""How soon a reader that waits for a pipe sees that it is to stop."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that a request holds."""

    records: int
    size_bytes: int


@contextmanager
def opened(file: str) -> Iterator[BufferedReader]:
    """Open a file, which may be compressed with gzip; - is stdin."""
    if file == "-":
        yield cast(BufferedReader, sys.stdin.buffer)
        return
    with gzip.open(file) if file.endswith(".gz") else Path(file).open("rb") as read:
        yield cast(BufferedReader, read)


def bundles(file: BufferedReader, bounds: Bounds, stopping: Callable[[], bool]) -> Iterator[list[Record]]:
    """Give the records, bundled; if a pipe has nothing more for now, those that came. Ends when `stopping` says so.

    Raises BadInput for what is no record, after all before it.
    """
    bundle, size = list[Record](), 0
    try:
        for records, has_more in arrivals(file, stopping):
            for record in records:
                if bundle and (len(bundle) == bounds.records or size + len(record.text) > bounds.size_bytes):
                    yield bundle
                    bundle, size = [], 0
                bundle.append(record)
                size += len(record.text) + 1
            if bundle and not has_more:
                yield bundle
                bundle, size = [], 0
    except BadInput:
        if bundle:
            yield bundle
        raise


def arrivals(file: BufferedReader, stopping: Callable[[], bool]) -> Iterator[tuple[list[Record], bool]]:
    """Give the records of each chunk, and whether there is more at once."""
    following = chunks(file, stopping)
    start = beginning(following)
    cutter = cutter_for(start)
    for chunk in chain([start], following):
        yield cutter.feed(chunk), is_ready(file, 0)
    if not stopping():
        yield cutter.finish(), False


def chunks(file: BufferedReader, stopping: Callable[[], bool]) -> Iterator[bytes]:
    """Give what comes as it comes, until the end, or until somebody stops it."""
    while not stopping():
        if is_ready(file, PATIENCE_SECONDS):
            chunk = file.read1(CHUNK_BYTES)
            if not chunk:
                return
            yield chunk


def beginning(following: Iterator[bytes]) -> bytes:
    """Take a line at least, if there is one."""
    start = b""
    for chunk in following:
        start += chunk
        if b"\n" in start.strip() or len(start) >= CHUNK_BYTES:
            break
    return start


def is_ready(file: BufferedReader, seconds: float) -> bool:
    """Tell whether reading does not wait; files never do, only pipes and terminals."""
    try:
        return bool(select.select([file.fileno()], [], [], seconds)[0])
    except (OSError, ValueError):
        return True
