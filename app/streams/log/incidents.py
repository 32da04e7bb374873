"""Incidents as the log tells of them, from the sample that opened each to its end, with the labels of its samples."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from app.storage import INCIDENTS_KEPT, Entry, IncidentRow, Position
from app.streams.log.events import BatchEvent, Cause, Causes, ConfigEvent, LabelEvent, read_event, read_records
from core import INCIDENT_EVENTS, OUTVOTED, DetectorConfig, Records

State = Literal["open", "closed", "accepted", "confirmed", "dismissed"]
STATES: Final[tuple[State, ...]] = ("open", "closed", "accepted", "confirmed", "dismissed")
End = Literal["", "closed", "accepted", "dismissed"]
ENDS: Final[dict[int, End]] = {INCIDENT_EVENTS.index("closed"): "closed", INCIDENT_EVENTS.index("accepted"): "accepted"}
MORE_FLAGGED, MORE_SEVERE = 2, 1.0
"""The row of an open incident is written again when it has so many times the flagged samples, or when it is 10 times
as rare: so a storm of 1,000 flagged samples costs about ten writes."""


class MainFeature(msgspec.Struct, frozen=True):
    """A feature that set off an incident: its value, what was expected, and the nats that it added to the score."""

    name: str
    value: float | None
    expected: float
    contribution: float


class Incident(msgspec.Struct, frozen=True):
    """A run of flagged samples, by the seq of the one that opened it.

    opened is when that one came, in milliseconds since 1970; all other times are in epoch seconds: those of samples, or
    their arrival if they came without, but ended_at is the arrival of what ended the incident. n_anomalous counts
    samples labelled anomalous, n_normal flagged ones labelled normal. position is the newest event that changed this.
    """

    seq: int
    opened: int
    begin: float
    peak_seq: int
    peak_time: float
    peak_score: float
    peak_severity: float
    last_seq: int
    last_time: float
    n_flagged: int
    position: Position
    features: tuple[MainFeature, ...] = ()
    ended: End = ""
    ended_at: float | None = None
    n_anomalous: int = 0
    n_normal: int = 0

    @property
    def state(self) -> State:
        """Say what has become of it: what its labels say, or else how it ended."""
        if self.n_normal > OUTVOTED * self.n_anomalous:
            return "dismissed"
        if self.n_anomalous:
            return "confirmed"
        return "open" if not self.ended else "accepted" if self.ended == "accepted" else "closed"

    @property
    def is_labelled(self) -> bool:
        """Tell whether a label says what it was; without one it is to be reviewed."""
        return bool(self.n_anomalous or self.n_normal)

    def row(self, *, is_news: bool = False) -> IncidentRow:
        """Give it as a row of the index."""
        return IncidentRow(self.seq, self.opened, _ENCODER.encode(self), is_news)

    def is_notably_more_than(self, written: "Incident") -> bool:
        """Tell whether it has grown so much that its row must be written again."""
        has_more = self.n_flagged >= MORE_FLAGGED * written.n_flagged
        return has_more or self.peak_severity >= written.peak_severity + MORE_SEVERE


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Incident)


def read_incident(row: IncidentRow) -> Incident:
    """Read a row of the index."""
    incident: Incident = _DECODER.decode(row.body)
    return incident


class Ledger(msgspec.Struct):
    """Follows the incidents of a stream along its log: the one that is open, now and as its row was last written.

    The rows follow from the log alone, and from how it is cut into events: a replay gives the same again.
    """

    current: Incident | None = None
    written: Incident | None = None

    def observe(self, records: Records, at: float, causes: Causes, config: DetectorConfig) -> list[Incident]:
        """Take a batch that came at a time; give the incidents whose rows it changes."""
        position, records = Position(int(records.seq[-1]), 0), records.counted
        if not len(records):
            return []  # for incidents these samples have not come
        if self.current is not None and self.current.ended:
            self._forget()  # labels ended it, and no later label can take that back
        ids = records.incident
        if self.current is None and not ids.any():
            return []
        changed: dict[int, Incident] = {}
        for rows in np.split(np.arange(len(ids)), np.flatnonzero(np.diff(ids)) + 1):
            part = records[rows]
            if (open_before := self.current) is not None and open_before.seq != ids[rows[0]]:
                changed[open_before.seq] = self._end(open_before, "closed", at, position)  # by its time
            if (now := self._taken(part, at, position, causes, config)) is not None:
                changed |= self._followed(now, int(part.event[-1]), at, position)
        return list(changed.values())

    def _forget(self) -> None:
        self.current = self.written = None

    def _taken(
        self, records: Records, at: float, position: Position, causes: Causes, config: DetectorConfig
    ) -> Incident | None:
        """Give the incident that these samples belong to, with them; None if there is none that was heard of."""
        seq, flagged = int(records.incident[0]), np.flatnonzero(records.is_anomaly)
        if seq == 0 or not len(flagged):
            return self.current
        times = np.where(np.isnan(records.time), at, records.time)
        now = self.current
        if now is None:
            begin = float(times[flagged[0]])
            features = features_of(records[:1], causes[seq], config) if seq in causes else ()
            now = Incident(seq, round(at * 1000), begin, seq, begin, 0.0, -1.0, seq, begin, 0, position, features)
        severity = np.nan_to_num(records.severity[flagged])  # early versions logged none
        top = flagged[np.lexsort((records.score[flagged], severity))[-1]]
        peak = float(severity.max()), float(records.score[top])
        if peak > (now.peak_severity, now.peak_score):
            place = {"peak_seq": int(records.seq[top]), "peak_time": float(times[top])}
            now = replace(now, peak_severity=peak[0], peak_score=peak[1], **place)
        last = {"last_seq": int(records.seq[flagged[-1]]), "last_time": float(times[flagged[-1]])}
        return replace(now, n_flagged=now.n_flagged + len(flagged), position=position, **last)

    def _followed(self, now: Incident, event: int, at: float, position: Position) -> dict[int, Incident]:
        """Go on with the current incident, or end it if the event says so; give it if its row changes."""
        if event in ENDS:
            return {now.seq: self._end(now, ENDS[event], at, position)}
        self.current = now
        if self.written is not None and not now.is_notably_more_than(self.written):
            return {}
        self.written = now
        return {now.seq: now}

    def _end(self, incident: Incident, end: End, at: float, position: Position) -> Incident:
        self._forget()
        return replace(incident, ended=end, ended_at=at, position=position)

    def label(
        self,
        before: Records,
        labels: Sequence[bool | None],
        at: float,
        position: Position,
        known: Mapping[int, Incident],
    ) -> list[Incident]:
        """Take new labels of samples, whose records are as before; give the incidents whose rows they change.

        known holds incidents that are over, by seq; there is nothing to say of others.
        """
        votes = count_votes(before, labels)
        changed = []
        for seq, (anomalous, normal) in votes.items():
            is_current = self.current is not None and self.current.seq == seq
            incident = self.current if is_current else known.get(seq)
            if incident is not None:
                counts = {"n_anomalous": incident.n_anomalous + anomalous, "n_normal": incident.n_normal + normal}
                incident = replace(incident, position=position, **counts)
                if is_current:
                    incident = self.current = self.written = ended_by_labels(incident, at)
                changed.append(incident)
        return changed


def count_votes(before: Records, labels: Sequence[bool | None]) -> dict[int, tuple[int, int]]:
    """Give by incident how many samples more, or fewer, are labelled anomalous, and how many flagged ones normal."""
    new = np.array([0 if label is None else 1 if label else -1 for label in labels], np.int64)
    old, ids = before.label.astype(np.int64), before.incident
    anomalous = (new > 0).astype(int) - (old > 0)
    normal = before.is_anomaly * ((new < 0).astype(int) - (old < 0))
    found = {}
    for incident in np.unique(ids[(ids > 0) & ((anomalous != 0) | (normal != 0))]).tolist():
        of_it = ids == incident
        found[incident] = int(anomalous[of_it].sum()), int(normal[of_it].sum())
    return found


def ended_by_labels(incident: Incident, at: float) -> Incident:
    """End an incident that is open when its labels dismiss it, or open it again when they do not any more."""
    if incident.state == "dismissed":
        return incident if incident.ended else replace(incident, ended="dismissed", ended_at=at)
    return replace(incident, ended="", ended_at=None)


def features_of(opening: Records, causes: Sequence[Cause], config: DetectorConfig) -> tuple[MainFeature, ...]:
    """Name the features that set off an incident."""
    values = [None if np.isnan(value) else value for value in opening.x[0].tolist()]
    return tuple(
        MainFeature(name_of(config, cause.feature), values[cause.feature], cause.expected, cause.contribution)
        for cause in causes
    )


def name_of(config: DetectorConfig, feature: int) -> str:
    """Name a feature; one without a name goes by its number from 0."""
    return str(feature) if config.features is None else config.features[feature].name


class Index:
    """The rows of a stream's index, made from its log alone."""

    def __init__(self, config: DetectorConfig) -> None:
        self.ledger, self.rows = Ledger(), dict[int, Incident]()
        self._config = config

    def take(self, entry: Entry) -> None:
        """Take the next event. Raises UnreadableEvent."""
        event = read_event(entry.body)
        if isinstance(event, ConfigEvent):
            return
        records = read_records(event.records)
        for incident in follow(self.ledger, event, records, entry.position, self._config, self.rows):
            self.rows[incident.seq] = incident
        while len(self.rows) > INCIDENTS_KEPT:
            del self.rows[min(self.rows)]


def follow(
    ledger: Ledger,
    event: BatchEvent | LabelEvent,
    records: Records,
    position: Position,
    config: DetectorConfig,
    known: Mapping[int, Incident],
) -> list[Incident]:
    """Let a ledger take an event of the log, with its records; give the incidents whose rows it changes."""
    if isinstance(event, BatchEvent):
        return ledger.observe(records, event.at, event.causes, config)
    return ledger.label(records, event.labels, event.at, position, known)
