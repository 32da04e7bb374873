"""What the metrics read of the streams at each scrape."""

from app.figures import StreamFigures
from app.streams.open.registry import Registry


class Gauges:
    """The figures of a registry and its worker."""

    def __init__(self, registry: Registry) -> None:
        self._registry, self._worker = registry, registry.worker
        self._started_at = self._worker.clock.monotonic()

    def count(self) -> int:
        """Count the streams in memory."""
        return len(self._figures())

    def held_bytes(self) -> int:
        """Give the memory of the open streams."""
        return self._registry.held_bytes

    def oldest_unsaved_seconds(self) -> float:
        """Give the age of the oldest change that no snapshot holds."""
        return self._seconds_since(self._worker.unsaved.oldest())

    def overdue_seconds(self) -> float:
        """Give how long the snapshot that has been due longest has been waiting."""
        return self._seconds_since(self._worker.unsaved.due_since(self._worker.settings.snapshot_age_seconds))

    def _seconds_since(self, time: float | None) -> float:
        return 0.0 if time is None else max(0.0, self._worker.clock.monotonic() - time)

    def watchers(self) -> int:
        """Count the event streams that are being sent."""
        return len(self._worker.subscriptions)

    def leases_held(self) -> int:
        """Count the streams that are leased."""
        return self._worker.leases.count()

    def damaged_streams(self) -> int:
        """Count the streams that are known to be damaged."""
        return len(self._worker.health.damaged)

    def mismatched_streams(self) -> int:
        """Count the streams that replayed to other scores than their logs say, and that nobody has accepted since."""
        return len(self._worker.health.mismatched)

    def store_retries(self) -> int:
        """Count how often the store was asked again after a failure."""
        return self._worker.store.retries

    def written(self) -> list[StreamFigures]:
        """Give the figures of the streams that this worker writes."""
        holds = self._worker.leases.holding()
        return [figures for figures in self._figures() if holds(figures.stream)]

    def _figures(self) -> list[StreamFigures]:
        sessions = self._registry.sessions.values()
        return [figures for session in sessions if (figures := session.figures) is not None]

    def silent_seconds(self, stream: str) -> float:
        """Give the time since a stream's last sample was learned here; since the start, if none was."""
        return self._worker.clock.monotonic() - self._worker.metrics.learned_at.get(stream, self._started_at)
