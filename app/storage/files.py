"""The index of a stream's archived files, kept with the stream: a row for each; what a row holds is the caller's."""

from typing import NamedTuple

from app.storage.log import MAX_SEQ


class FileRow(NamedTuple):
    """A file by the last sample number that it covers; `ids` tells which client ids it may hold."""

    seq: int
    body: bytes
    ids: bytes = b""


def check_file(row: FileRow) -> None:
    """Raise ValueError for a row that some store could not keep."""
    if not 0 <= row.seq <= MAX_SEQ:
        raise ValueError(f"files end at samples 0 .. {MAX_SEQ}, not at {row.seq}")
