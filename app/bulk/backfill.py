"""Runs one stream from its first sample to its last, and gives scores, incidents and the stream's image."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from app.bulk.dues import Dues, Waiting
from app.bulk.job import MOST_LABELS_AT_ONCE, Job
from app.bulk.kept import KeptLog
from app.bulk.rows import Rows, in_batches
from app.bulk.stream import StreamRun
from app.streams.log.incident_ids import id_of
from app.streams.log.incidents import Incident
from app.streams.state.image import image_of
from core import INCIDENT_EVENTS, Records

Columns = dict[str, Any]
"""Columns of one length by their names, as app.bulk.tables describes them."""
EVENTS: Final = np.array([event or None for event in INCIDENT_EVENTS], np.object_)


class Backfill:
    """A stream of a job; take its scores first."""

    def __init__(self, job: Job, stream: str) -> None:
        self._job, self._stream = job, stream
        self._kept = KeptLog()
        self._run = StreamRun(job, self._kept)
        self._dues = Dues(job)

    def scores(self, parts: Iterable[Rows]) -> Iterator[Columns]:
        """Observe the rows and tell their labels when they are due; give the answers, batch by batch.

        Raises BadRow.
        """
        for batch in in_batches(parts, self._job.batch_size):
            for due, part, own in self._dues.segments(batch):
                self._tell(due)
                if rows := batch[part]:
                    yield self._observe(rows, own)
        self._tell(self._dues.rest())

    def _observe(self, rows: Rows, labels: Sequence[Waiting]) -> Columns:
        records, places = self._run.observe(rows, self._job.at)
        self._name(rows, labels, records, places)
        new = [i for i, place in enumerate(places) if place is not None]
        return scored(self._stream, rows.chosen(new), records)

    def _name(self, rows: Rows, labels: Sequence[Waiting], records: Records, places: Sequence[int | None]) -> None:
        """Say which samples the labels are for."""
        waiting = iter(labels)
        for i in np.flatnonzero(rows.label).tolist():
            place = places[i]
            known = self._kept.find_id(rows.ids[i]) if place is None else None
            next(waiting).seq = (known or 0) if place is None else int(records.seq[place])

    def _tell(self, labels: Sequence[Waiting]) -> None:
        for first in range(0, len(labels), MOST_LABELS_AT_ONCE):
            # the last word on a sample that came twice
            self._run.label({one.seq: one.anomaly for one in labels[first : first + MOST_LABELS_AT_ONCE]}, self._job.at)

    def incidents(self) -> Columns:
        """Give all incidents, with what labels have said of them by the end."""
        told = [self._kept.told[seq] for seq in sorted(self._kept.told)]
        return {
            "stream": [self._stream] * len(told),
            "id": [id_of(self._stream, one.seq, one.opened) for one in told],
            "state": [one.state for one in told],
            "features": [json.dumps([feature.name for feature in one.features]) for one in told],
            **{name: [getattr(one, name) for one in told] for name in INCIDENT_FIELDS},
        }

    def image(self) -> Columns:
        """Give the image of the stream, which can be imported, in one row."""
        run, detector = self._run, self._run.state.detector
        labels = {seq: record.to_bytes() for seq, record in self._kept.labelled.items()}
        image = image_of(run.state, list(self._kept.entries), labels, self._kept.rows())
        return {
            "stream": [self._stream],
            "samples": [detector.n_seen],
            "repeated": [run.n_repeated],
            "flagged": [detector.n_flagged],
            "incidents": [len(self._kept.told)],
            "labels": [json.dumps(dict(sorted(run.outcomes.items())))],
            "image": [image.to_bytes()],
        }


INCIDENT_FIELDS: Final = tuple(
    name for name in Incident.__struct_fields__ if name not in ("position", "features", "opened")
)


def scored(stream: str, rows: Rows, records: Records) -> Columns:
    """Give the answers to new samples."""
    n = len(rows)
    return {
        "stream": np.full(n, stream, np.object_),
        "seq": records.seq,
        "time": np.full(n, np.nan) if rows.times is None else rows.times,
        "id": [name or None for name in rows.ids] if rows.ids else [None] * n,
        "score": records.score,
        "threshold": records.threshold,
        "severity": records.severity,
        "is_anomaly": records.is_anomaly,
        "ready": records.ready,
        "incident": records.incident,
        "event": EVENTS[records.event],
        "label": [None if label == 0 else label > 0 for label in rows.label.tolist()],
    }
