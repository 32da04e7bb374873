"""Checks an image before any of it is stored: its log must lead to its state, and hold what a stream can hold."""

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from app.storage import INCIDENTS_KEPT, Entry, IncidentRow, Position
from app.streams.ids import is_sample_id
from app.streams.log.events import BatchEvent, Cause, ConfigEvent, UnreadableEvent, read_event, read_records
from app.streams.log.incidents import read_incident
from app.streams.state.image import Image
from app.streams.state.state import StreamState
from core import InvalidSnapshot, Records


class ImageCheck:
    """Follows the log of an image, chunk by chunk; every method raises InvalidSnapshot.

    The times of samples, if they have any, are from `earliest` to `latest`, and no event came later than that.
    """

    def __init__(self, image: Image, state: StreamState, earliest: float, latest: float) -> None:
        self._image, self._config, self._earliest, self._latest = image, state.detector.config, earliest, latest
        self._state, self._labelled = state, set[int]()
        self._position: Position | None = None
        self.begin = state.position
        """The place before the first entry."""

    def take(self, entries: Sequence[Entry]) -> None:
        """Check the next entries."""
        for entry in entries:
            if self._position is None:
                _refuse_unless(entry.first_seq is not None, "its log does not begin with samples")
                self.begin = self._position = Position((entry.first_seq or 0) - 1, 0)
            _refuse_unless(entry.follows(self._position), f"its log has a gap after {self._position}")
            try:
                self._take(entry)
            except UnreadableEvent as error:
                raise InvalidSnapshot(f"the event at {entry.position} cannot be read") from error
            self._position = entry.position

    def _take(self, entry: Entry) -> None:
        event, at = read_event(entry.body), entry.position
        _refuse_unless(not isinstance(event, ConfigEvent), f"the event at {at} changes the config")
        assert not isinstance(event, ConfigEvent)
        records = read_records(event.records)
        _refuse_unless(0 <= event.at <= self._latest, f"the event at {at} came at {event.at!r}")
        self._check_records(f"the event at {at}", records)
        if isinstance(event, BatchEvent):
            self._take_batch(entry, event, records)
        else:
            seqs = records.seq.tolist()
            _refuse_unless(len(seqs) == len(event.labels) > 0, f"the event at {at} has labels without samples")
            _refuse_unless(all(0 < seq <= at.seq for seq in seqs), f"the event at {at} labels samples to come")
            self._labelled.update(seqs)

    def _take_batch(self, entry: Entry, event: BatchEvent, records: Records) -> None:
        at, first = entry.position, entry.first_seq or 0
        _refuse_unless(np.array_equal(records.seq, np.arange(first, at.seq + 1)), f"the batch at {at} has other seqs")
        _refuse_unless(event.timestamps in (b"", records.time.tobytes()), f"the batch at {at} has other times")
        _refuse_unless(len(entry.ids) in (0, len(records)), f"the batch at {at} has ids of other samples")
        _refuse_unless(all(map(is_sample_id, entry.ids)), f"the batch at {at} has an id that no sample can have")
        causes = [cause for some in event.causes.values() for cause in some]
        _refuse_unless(
            not event.explained and all(map(self._is_cause, causes)), f"the batch at {at} is explained oddly"
        )

    def _check_records(self, what: str, records: Records) -> None:
        times, scores = records.time[~np.isnan(records.time)], np.stack([records.score, records.threshold])
        _refuse_unless(records.x.shape[1] == self._config.n_features, f"{what} has another width")
        _refuse_unless(
            bool(((times >= self._earliest) & (times <= self._latest)).all()), f"{what} has a time out of range"
        )
        _refuse_unless(bool(np.isfinite(scores[:, records.ready]).all()), f"{what} lacks a score")

    def _is_cause(self, cause: Cause) -> bool:
        return 0 <= cause.feature < self._config.n_features and _is_finite((cause.contribution, cause.expected))

    def finish(self) -> None:
        """Check that the log has led to the state, and what was made of it."""
        state = self._state
        end = self._position or state.position
        _refuse_unless(state.position == end and end.seq == state.detector.next_seq - 1, "its log ends elsewhere")
        _refuse_unless(state.recent is not None and state.incidents is not None, "it lacks its newest samples")
        _refuse_unless(not state.replay_mismatches and state.rebuilt is None, "it was not made in one piece")
        for seq, body in self._image.labels.items():
            self._check_label(seq, body)
        _refuse_unless(len(self._image.incidents) <= INCIDENTS_KEPT, f"it has more than {INCIDENTS_KEPT} incidents")
        for row in self._image.incidents:
            self._check_incident(row)

    def _check_label(self, seq: int, body: bytes) -> None:
        try:
            record = read_records(body)
        except UnreadableEvent as error:
            raise InvalidSnapshot(f"the record of sample {seq} cannot be read") from error
        fits = record.seq.tolist() == [seq] and seq in self._labelled and seq > self.begin.seq
        _refuse_unless(fits, f"the record of sample {seq} is another's")
        self._check_records(f"the record of sample {seq}", record)

    def _check_incident(self, row: IncidentRow) -> None:
        try:
            incident = read_incident(row)
        except msgspec.DecodeError as error:
            raise InvalidSnapshot(f"incident {row.seq} cannot be read") from error
        numbers = [value for value in msgspec.structs.astuple(incident) if isinstance(value, int | float)]
        numbers += [n for feature in incident.features for n in (feature.expected, feature.contribution)]
        numbers += [feature.value for feature in incident.features if feature.value is not None]
        seqs = incident.peak_seq, incident.last_seq
        fits = (incident.seq, incident.opened) == (row.seq, row.opened) and incident.position <= self._state.position
        is_known = 0 < row.seq <= min(seqs) and max(seqs) <= self._state.position.seq
        _refuse_unless(fits and is_known and _is_finite(numbers), f"incident {row.seq} is not one of its samples")


def _is_finite(numbers: Iterable[float]) -> bool:
    return all(map(math.isfinite, numbers))


def _refuse_unless(fits: bool, said: str) -> None:
    if not fits:
        raise InvalidSnapshot(said)
