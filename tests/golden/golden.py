"""What is kept of a stream of an earlier version, and what that version said of it."""

from pathlib import Path

import msgspec

from app.storage import Entry, Position, Snapshot

FOLDER = Path(__file__).parent


class Answers(msgspec.Struct):
    """Columns that were answered; NaN before ready."""

    score: list[float]
    threshold: list[float]
    is_anomaly: list[bool]


class Golden(msgspec.Struct):
    """One stream: its snapshot, the log after it, the newest records of labelled samples, and what came next."""

    position: tuple[int, int]
    snapshot: bytes
    entries: list[tuple[tuple[int, int], bytes, int | None, list[str]]]
    labels: dict[int, bytes]
    next_samples: list[list[float]]
    next_answers: Answers

    def stored_snapshot(self) -> Snapshot:
        """Give the snapshot as the store keeps it."""
        return Snapshot(Position(*self.position), self.snapshot)

    def log(self) -> list[Entry]:
        """Give the entries as the store keeps them."""
        return [Entry(Position(*at), body, first, tuple(ids)) for at, body, first, ids in self.entries]


def versions() -> list[str]:
    """Give the versions that streams are kept of, the oldest first."""
    return sorted((path.name for path in FOLDER.iterdir() if path.name.isdecimal()), key=int)


def path_of(version: str, name: str) -> Path:
    """Give the file of a stream."""
    return FOLDER / version / f"{name}.msgpack"


def read(path: Path) -> Golden:
    """Read a stream."""
    return msgspec.msgpack.decode(path.read_bytes(), type=Golden)


def write(path: Path, golden: Golden) -> None:
    """Write a stream."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.msgpack.encode(golden))
