"""The state of a stream in memory, and its snapshot as bytes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from app.figures import StreamFigures
from app.storage import START, Position, Snapshot
from app.streams.log.horizon import Horizon
from app.streams.log.incidents import Ledger
from app.streams.log.recent import Recent
from app.streams.state.integrity import Mismatches, Rebuilt
from app.streams.state.memory import SESSION_BYTES, held_bytes
from core import ConfigChange, Detector, DetectorConfig, InvalidSnapshot, decode_snapshot, encode_snapshot

KIND = "stream"
VERSION = 1
EVENT_SECONDS = 0.00015
"""CPU time that the replay of an event takes at least: to read it and to compare its scores."""
GROWTH, MAX_UNMEASURED = 8, 1024
"""A stream's memory is measured again after it has seen 1/GROWTH more samples, at the latest after MAX_UNMEASURED."""


class Header(msgspec.Struct, frozen=True):
    """What a snapshot holds beside the engine; fields that early versions did not write have a default."""

    oldest_seq: int
    marks: list[tuple[int, float]]
    newest_timestamp: float | None
    replay_mismatches: Mismatches = msgspec.field(default_factory=Mismatches)
    rebuilt: Rebuilt | None = None
    position: Position | None = None
    incidents: Ledger | None = None
    recent: Recent | None = None


@dataclass(slots=True)
class StreamState:
    """A detector and its position in the log, and what nobody has accepted yet: replay differences and a rebuild.

    unsaved_events are those that no snapshot holds, unsaved_work are the CPU seconds that the engine took for them.
    incidents and recent are None if an earlier version wrote the snapshot. snapshot_failure says why the state cannot
    be stored. first_snapshot is what a new stream is created with; None once the store knows the stream.
    """

    detector: Detector
    position: Position
    horizon: Horizon
    newest_timestamp: float | None = None
    unsaved_events: int = 0
    unsaved_work: float = 0.0
    replay_mismatches: Mismatches = field(default_factory=Mismatches)
    rebuilt: Rebuilt | None = None
    snapshot_failure: str | None = None
    first_snapshot: Snapshot | None = None
    incidents: Ledger | None = None
    recent: Recent | None = None
    figures: StreamFigures = field(init=False)
    _measured_bytes: int = field(default=0, init=False)
    _measure_again_at: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.figures = StreamFigures("", expected_flag_rates(self.detector.config))

    def update_figures(self) -> None:
        """Update the figures that are cheap to read."""
        detector, figures = self.detector, self.figures
        figures.samples, figures.samples_needed = detector.n_seen, detector.samples_needed
        figures.is_warming_up = not detector.ready
        figures.nodes, figures.splits = detector.n_nodes, detector.n_splits
        figures.incident, figures.incidents = detector.incident, detector.n_incidents
        figures.threshold = detector.threshold if detector.ready else None
        figures.log_samples = detector.next_seq - self.horizon.oldest_seq
        figures.unsaved_events, figures.replay_seconds = self.unsaved_events, self.replay_seconds

    @property
    def replay_seconds(self) -> float:
        """The CPU time that a replay of the unsaved events would take.

        A replay spends on reading what it saves in the engine, where it observes short batches together.
        """
        return max(self.unsaved_work, EVENT_SECONDS * self.unsaved_events)

    def note_work(self, seconds: float) -> None:
        """Count CPU time that the engine took for events that no snapshot holds yet."""
        self.unsaved_work += seconds

    def note_saved(self, horizon: Horizon) -> None:
        """Take note that a snapshot with this horizon holds everything."""
        self.horizon, self.unsaved_events, self.unsaved_work = horizon, 0, 0.0
        self.snapshot_failure = None

    def reconfigure(self, changes: Mapping[str, Any]) -> ConfigChange:
        """Change fields of the config. Raises InvalidConfig, and changes nothing, for what cannot change."""
        change = self.detector.reconfigure(changes)
        self.figures.expect(expected_flag_rates(self.detector.config))
        return change

    def note_times(self, times: npt.NDArray[np.float64] | None) -> None:
        """Keep the newest of the times that samples came with."""
        if times is not None and not np.isnan(times).all():
            latest = float(np.nanmax(times))
            self.newest_timestamp = latest if self.newest_timestamp is None else max(self.newest_timestamp, latest)

    def memory_bytes(self) -> int:
        """Give the bytes in memory as last measured: to measure takes a millisecond."""
        seen = self.detector.n_seen
        if not self._measured_bytes or seen >= self._measure_again_at:
            self._measured_bytes = SESSION_BYTES + held_bytes(self)
            self._measure_again_at = seen + 1 + min(seen // GROWTH, MAX_UNMEASURED)
        return self._measured_bytes

    def to_bytes(self, horizon: Horizon | None = None) -> bytes:
        """Write the state; a state read back continues bit for bit."""
        return self._written(horizon or self.horizon, self.recent)

    def exported(self) -> bytes:
        """Write what an import takes over: nothing that depends on when samples arrived here."""
        return self._written(self.horizon, None)

    def _written(self, kept: Horizon, recent: Recent | None) -> bytes:
        header = Header(
            kept.oldest_seq,
            kept.watermarks,
            self.newest_timestamp,
            self.replay_mismatches,
            self.rebuilt,
            self.position,
            self.incidents,
            recent,
        )
        meta: dict[str, Any] = msgspec.to_builtins(header)
        return encode_snapshot(KIND, VERSION, meta, {"engine": np.frombuffer(self.detector.to_bytes(), dtype=np.uint8)})

    @classmethod
    def from_bytes(cls, body: bytes, position: Position) -> "StreamState":
        """Read a state, or raise InvalidSnapshot; at START the position in the snapshot counts, if there is one."""
        meta, arrays = decode_snapshot(body, KIND, VERSION)
        header = read_header(meta)
        if "engine" not in arrays:
            raise InvalidSnapshot("it holds no engine")
        detector = Detector.from_bytes(arrays["engine"].tobytes())
        horizon = Horizon(header.oldest_seq, header.marks)
        if position == START and header.position is not None:
            position = header.position  # the store has lost its own
        state = cls(detector, position, horizon, header.newest_timestamp, incidents=header.incidents)
        state.replay_mismatches, state.rebuilt, state.recent = header.replay_mismatches, header.rebuilt, header.recent
        return state


def expected_flag_rates(config: DetectorConfig) -> dict[str, float]:
    """Give the shares of the samples that are flagged before labels: by mistake, and because they are anomalous."""
    rate = config.expected_anomaly_rate
    return {"normal": (1 - rate) * config.false_alarm_rate, "anomalous": rate}


def after(position: Position) -> Position:
    """Give the next place at the same sample."""
    return Position(position.seq, position.sub + 1)


def rebased(imported: StreamState, earliest: Position, next_seq: int) -> StreamState:
    """Move an imported state to its place in this log; none of its own samples can be labelled here."""
    detector = imported.detector
    shift = max(0, next_seq - detector.next_seq)
    detector.renumber(detector.first_seq + shift)
    state = new_state(detector, max(Position(detector.next_seq - 1, 0), earliest))
    state.newest_timestamp = imported.newest_timestamp
    return state


def new_state(detector: Detector, position: Position) -> StreamState:
    """Give the state of a stream whose log begins with the detector's next sample."""
    return StreamState(detector, position, Horizon(detector.next_seq), incidents=Ledger(), recent=Recent())


def costs_of(detector: Detector) -> dict[str, float | None]:
    """Give what the decisions on labelled samples have cost."""
    costs = detector.costs()
    return {**asdict(costs), "labels": costs.labels}


def read_header(meta: dict[str, Any]) -> Header:
    """Read what a snapshot holds beside the engine."""
    try:
        return msgspec.convert(meta, Header)
    except msgspec.ValidationError as error:
        raise InvalidSnapshot(str(error)) from error


def first_state(detector: Detector) -> StreamState:
    """Give the state of a stream that the store does not know yet."""
    state = new_state(detector, START)
    state.first_snapshot = Snapshot(state.position, state.to_bytes())
    return state
