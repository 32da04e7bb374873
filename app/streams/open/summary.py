"""A stream in short, as the store keeps it beside the stream."""

import msgspec
from msgspec.structs import replace

from app.storage import StoreCorrupt
from app.streams.log.events import UnreadableEvent
from app.streams.log.log import Log
from app.streams.log.recent import HOUR_SECONDS, HOURS, newest_time, recent_of
from app.streams.state.state import StreamState
from core import InvalidSnapshot


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a stream stands, as of a sample; only n_seen and the times may be newer. None is unknown."""

    stream: str
    readable: bool = True
    as_of_seq: int | None = None
    n_seen: int | None = None
    ready: bool | None = None
    samples_needed: int | None = None
    threshold: float | None = None
    n_flagged: int | None = None
    incident: int | None = None
    incident_begin: float | None = None
    incident_severity: float | None = None
    incidents: int | None = None
    to_review: int | None = None
    severity: float | None = None
    flagged_time: float | None = None
    n_nodes: int | None = None
    labels: int | None = None
    true_alarms: int | None = None
    false_alarms: int | None = None
    misses: int | None = None
    newest_time: float | None = None


class Summary(Standing, array_like=True, tag=1, frozen=True, kw_only=True, gc=False):
    """What the store keeps of it: also when something was last written, and the flagged samples by hours since 1970.

    A change of the fields needs another tag: what an older version wrote then counts as missing.
    """

    written_at: float | None = None
    flags: tuple[tuple[int, int], ...] | None = None

    @property
    def is_told(self) -> bool:
        """Tell whether anything is known of the stream but its name."""
        return self.n_seen is not None or not self.readable

    def flags_by_hour(self, now: float) -> list[int] | None:
        """Give how many samples were flagged in each of the last HOURS hours, the present one last."""
        if self.flags is None:
            return None
        first, counts = int(now // HOUR_SECONDS) - HOURS + 1, [0] * HOURS
        for hour, count in self.flags:
            if 0 <= hour - first < HOURS:
                counts[hour - first] += count
        return counts

    def flagged_lately(self, now: float) -> int | None:
        """Give how many samples were flagged in the last HOURS hours."""
        if not self.flags:
            return None if self.flags is None else 0
        newest = int(now // HOUR_SECONDS)
        return sum(count for hour, count in self.flags if newest - HOURS < hour <= newest)

    def to_bytes(self) -> bytes:
        """Write it for the store."""
        return _ENCODER.encode(self)


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Summary)


def read_summary(stream: str, body: bytes | None) -> Summary:
    """Read what the store keeps; nothing is known if that is missing, or of another version."""
    if body is not None:
        try:
            summary: Summary = _DECODER.decode(body)
        except msgspec.MsgspecError:
            return Summary(stream=stream)
        return summary
    return Summary(stream=stream)


def summary_of(stream: str, state: StreamState, oldest_to_label: int, written_at: float | None) -> Summary:
    """Describe a stream by its state."""
    detector, costs, recent = state.detector, state.detector.costs(), state.recent
    assert recent is not None
    current = state.incidents.current if state.incidents is not None and detector.incident else None
    return Summary(
        stream=stream,
        as_of_seq=detector.next_seq - 1,
        n_seen=detector.n_seen,
        ready=detector.ready,
        samples_needed=detector.samples_needed,
        threshold=detector.threshold,
        n_flagged=detector.n_flagged,
        incident=detector.incident or None,
        incident_begin=current.begin if current else None,
        incident_severity=current.peak_severity if current else None,
        incidents=detector.n_incidents,
        to_review=recent.n_unlabelled(oldest_to_label),
        severity=recent.severity,
        flagged_time=recent.flagged_time,
        n_nodes=detector.n_nodes,
        labels=costs.labels,
        true_alarms=costs.true_alarms,
        false_alarms=costs.false_alarms,
        misses=costs.misses,
        newest_time=recent.newest_time,
        written_at=written_at,
        flags=tuple(recent.flags),
    )


async def summary_of_stored(log: Log, written_at: float | None) -> Summary | None:
    """Describe a stream by its snapshot and the end of its log, without opening it; None if there is none by now."""
    try:
        loaded = await log.store.load(log.stream)
        if loaded is None:
            return None
        snapshot, head = loaded
        state = StreamState.from_bytes(snapshot.body, snapshot.position)
        if state.recent is None:
            state.recent = await recent_of(log, head.seq + 1)
        if head.seq > state.position.seq:
            state.recent.newest_time = await newest_time(log, head)
    except (StoreCorrupt, InvalidSnapshot, UnreadableEvent):
        return Summary(stream=log.stream, readable=False)
    summary = summary_of(log.stream, state, state.horizon.oldest_seq, written_at)
    return replace(summary, n_seen=state.detector.n_seen + head.seq - state.position.seq)
