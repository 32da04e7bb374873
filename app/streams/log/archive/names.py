"""Where archived files lie: LOG for the service itself, SAMPLES and LABELS for people."""

from typing import Final
from uuid import uuid4

LOG: Final = "log"
SAMPLES: Final = "samples"
LABELS: Final = "labels"
KINDS: Final = {LOG: "block", SAMPLES: "parquet", LABELS: "parquet"}
NO_STREAM: Final = "~"
"""No stream can have this name: its folder holds a file of labels without rows, so that a query always finds one."""
SEQ_DIGITS: Final = 16


def new_name(first_seq: int) -> str:
    """Name a file by its first sample, so that names are in order; no other file ever has this name."""
    return f"{first_seq:0{SEQ_DIGITS}d}-{uuid4().hex[:12]}"


def folder_of(kind: str, stream: str) -> str:
    """Name the folder of a stream, in Hive's style."""
    return f"{kind}/stream={stream}"


def path_of(kind: str, stream: str, name: str) -> str:
    """Give the path of one of the files that bear a name."""
    return f"{folder_of(kind, stream)}/{name}.{KINDS[kind]}"


def paths_of(stream: str, name: str) -> list[str]:
    """Give the paths of all of them."""
    return [path_of(kind, stream, name) for kind in KINDS]


def name_in(path: str) -> str:
    """Give the name in a path."""
    return path.rpartition("/")[2].partition(".")[0]
