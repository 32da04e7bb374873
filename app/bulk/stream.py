"""One stream of a backfill, computed as a service would that got the same samples and labels in the same order."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.bulk.job import Job
from app.bulk.kept import Kept
from app.bulk.rows import BadRow, Floats, Rows
from app.storage import START
from app.streams.batches.samples import CheckedSamples, Matrix, Places
from app.streams.batches.timestamps import checked_times, given_times
from app.streams.errors import Refused
from app.streams.faults import Faults
from app.streams.state.state import StreamState, new_state
from app.streams.state.steps import LabelChange, log_labels, log_samples
from core import Detector, DetectorConfig, Records


class Columns(CheckedSamples):
    """Samples that are a matrix already."""

    def __init__(self, X: Floats) -> None:
        self._X = X

    def count(self, n_features: int) -> int:
        return len(self._X)

    def fields(self, stream: str) -> Mapping[str, Any]:
        """Say nothing: the config is known."""
        return {}

    def _fitting(self, config: DetectorConfig, faults: Faults) -> tuple[Matrix, Places]:
        return self._X, range(len(self._X))


class StreamRun:
    """A stream from its first sample on, or from a state that was saved with its kept log."""

    def __init__(self, job: Job, kept: Kept, state: StreamState | None = None) -> None:
        self._job, self.kept = job, kept
        self.state = state or new_state(Detector(job.detector_config()), START)
        self.outcomes: Counter[str] = Counter()
        """What became of the labels."""
        self.n_repeated = 0

    def observe(self, rows: Rows, at: float) -> tuple[Records, list[int | None]]:
        """Observe samples that come at a time; give their records, and the place of each row among these.

        A row whose id is known, with the same values, is not observed again: its place is None. Raises BadRow.
        """
        new = self._new(rows)
        places: list[int | None] = [None] * len(rows)
        for place, i in enumerate(new):
            places[i] = place
        self.n_repeated += len(rows) - len(new)
        if not new:
            return Records.empty(0, self.state.detector.config.n_features, 0), places
        return self._learn(rows.chosen(new), at), places

    def _new(self, rows: Rows) -> Sequence[int]:
        """Give the rows whose ids are not known; a known id must come with its first values."""
        if not rows.ids:
            return range(len(rows))
        found, first = list[int](), dict[str, Floats]()
        for i, name in enumerate(rows.ids):
            before = first.get(name) if name else None
            if name and before is None and (seq := self.find(name, len(found))) is not None:
                before = self.kept.records([seq])[seq].x[0]
            if before is None:
                first[name] = rows.X[i]
                found.append(i)
            elif not np.array_equal(before, rows.X[i], equal_nan=True):
                raise BadRow(rows.places[i], f"the id {name!r} came with other values before")
        return found

    def _learn(self, rows: Rows, at: float) -> Records:
        state = self.state
        times = self._checked(rows, at)
        records = state.detector.observe(rows.X, times).records
        entry, incidents = log_samples(state, records, rows.ids if any(rows.ids) else (), times, at)
        self.kept.add_samples(entry, records, incidents)
        state.position = entry.position
        state.note_times(times)
        self.kept.forget_before(self._oldest())
        return records

    def _checked(self, rows: Rows, at: float) -> Floats | None:
        """Check samples as a service does, and give their times as it takes them. Raises BadRow."""
        config, places = self.state.detector.config, np.arange(len(rows))
        uses_time = config.half_life_seconds is not None
        if len(odd := np.flatnonzero(np.isinf(rows.X).any(axis=1))):
            raise BadRow(rows.places[odd[0]], "a value is infinite, but must be a finite number")
        try:
            Columns(rows.X).matrix(config)
            times = given_times(rows.times, places, config)
            if times is None:
                return np.full(len(rows), at) if uses_time else None
            newest = None if self.state.newest_timestamp is None else min(self.state.newest_timestamp, at)
            return checked_times(times, places, newest, at, self._job.allowance_seconds, in_order=uses_time)
        except Refused as error:
            raise BadRow(rows.places[error.rows[0]], str(error.faults[0])) from None

    def find(self, client_id: str, later: int = 0) -> int | None:
        """Give the seq of a known id, as it will be after so many samples; those beyond the kept log are not known."""
        seq = self.kept.find_id(client_id)
        return None if seq is None or seq < self._oldest() + later else seq

    def _oldest(self) -> int:
        return self.state.detector.next_seq - self._job.keep_samples

    def label(self, labels: Mapping[int, bool | None], at: float) -> dict[int, str]:
        """Tell labels of different samples, by seq, at a time; give what each did."""
        known = self.kept.records(seq for seq in labels if seq >= self._oldest())
        outcome = {seq: "expired" if seq not in known else "not_learned" for seq in labels}
        seqs = [seq for seq in labels if seq in known and not known[seq].held_out[0]]
        if seqs:
            outcome |= self._label(Records.joined([known[seq] for seq in seqs], known[seqs[0]].x.shape[1]), labels, at)
        self.outcomes.update(outcome.values())
        return outcome

    def _label(self, before: Records, labels: Mapping[int, bool | None], at: float) -> dict[int, str]:
        state, seqs = self.state, before.seq.tolist()
        ended = self.kept.incidents(set(before.incident.tolist()) - {0})
        given = [labels[seq] for seq in seqs]
        told = state.detector.feedback(before, given)
        if any(outcome != "duplicate" for outcome in told.outcome):
            change = LabelChange(before, given, told.records, told.accepted, told.threshold_before, is_new=True)
            entry, incidents = log_labels(state, change, at, ended)
            self.kept.add_labels(entry, told.records, incidents)
            state.position = entry.position
        return dict(zip(seqs, told.outcome, strict=True))
