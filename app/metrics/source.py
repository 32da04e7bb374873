"""What the metrics ask for at a scrape."""

from typing import Protocol

from app.figures import StreamFigures


class Source(Protocol):
    """Who holds the streams in memory."""

    def count(self) -> int:
        """Count the streams in memory."""

    def held_bytes(self) -> float:
        """Give the memory that they take."""

    def oldest_unsaved_seconds(self) -> float:
        """Give the age of the oldest change that is in no snapshot."""

    def overdue_seconds(self) -> float:
        """Give how long the snapshot that has been due longest has been waiting."""

    def watchers(self) -> int:
        """Count the event streams that are being sent."""

    def leases_held(self) -> int:
        """Count the streams that are leased."""

    def damaged_streams(self) -> int:
        """Count the streams that are known to be damaged."""

    def mismatched_streams(self) -> int:
        """Count the streams whose replay differed from their logs, and that nobody has accepted since."""

    def store_retries(self) -> int:
        """Count how often the store was asked again after a failure."""

    def written(self) -> list[StreamFigures]:
        """Give the figures of the streams that this worker writes; another worker reports the streams read here."""

    def silent_seconds(self, stream: str) -> float:
        """Give the time since this worker got a stream's last sample; since its start, if it got none."""


class Usage(Protocol):
    """How full a store is."""

    @property
    def used_bytes(self) -> int:
        """Give the used bytes."""

    @property
    def limit_bytes(self) -> int:
        """Give the size; 0 if it is not known."""

    @property
    def database_bytes(self) -> int:
        """Measure the database's file, if there is one."""

    @property
    def wal_bytes(self) -> int:
        """Measure the write-ahead file, if there is one."""


class Connected(Protocol):
    """Who holds the connections."""

    held_bytes: int

    def __len__(self) -> int: ...


class NoStreams:
    """A source before there is one."""

    def count(self) -> int:
        return 0

    def held_bytes(self) -> float:
        return 0.0

    def oldest_unsaved_seconds(self) -> float:
        return 0.0

    def overdue_seconds(self) -> float:
        return 0.0

    def watchers(self) -> int:
        return 0

    def leases_held(self) -> int:
        return 0

    def damaged_streams(self) -> int:
        return 0

    def mismatched_streams(self) -> int:
        return 0

    def store_retries(self) -> int:
        return 0

    def written(self) -> list[StreamFigures]:
        return []

    def silent_seconds(self, stream: str) -> float:
        return 0.0
