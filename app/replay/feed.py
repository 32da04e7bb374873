"""Posts the rows of a table in order, and their labels when they are due."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.replay.reading.table import Row
from app.replay.schedule import LabelQueue, Revealed
from itan_client import Client, Observed

MOST_LABELS_AT_ONCE = 1000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """How to replay: batches of at most `batch_size`, a share of the labels, each `label_delay` samples late.

    Labels are sent after every `label_every` samples, so they may be later.
    """

    stream: str
    batch_size: int = 100
    label_delay: int = 100
    label_every: int = 1
    label_rate: float = 1.0
    seed: int = 0
    limit: int | None = None
    final_labels: bool = True
    keeps_rows: bool = False
    """Whether the outcome keeps what was sent."""


@dataclass
class Outcome:
    """The service's answer to each sample of this replay, and its label in the file; the rows only if they are kept."""

    seq: list[int] = field(default_factory=list)
    score: list[float | None] = field(default_factory=list)
    threshold: list[float | None] = field(default_factory=list)
    flag: list[bool] = field(default_factory=list)
    severity: list[float | None] = field(default_factory=list)
    incident: list[int | None] = field(default_factory=list)
    label: list[bool | None] = field(default_factory=list)
    label_outcomes: Counter[str] = field(default_factory=Counter)
    incident_events: Counter[str] = field(default_factory=Counter)
    sent: list[tuple[int, list[int]]] = field(default_factory=list)
    """After how many samples which labels were sent, by the places of their samples from 0 on."""
    stopped: bool = False
    batches: list[Floats] = field(default_factory=list)
    """The values (k, m) of the samples, NaN = missing, if they are kept."""
    stamps: list[float | None] = field(default_factory=list)

    @property
    def values(self) -> Floats:
        """The values (n, m) of the samples that were kept, NaN = missing."""
        return np.concatenate(self.batches) if self.batches else np.empty((0, 0))

    @property
    def times(self) -> Floats | None:
        """The times (n,) of the samples that were kept, in epoch seconds; None if the file has no times."""
        if not self.stamps or self.stamps[0] is None:
            return None
        return np.array(self.stamps, dtype=np.float64)

    def add(self, observed: Observed, rows: Sequence[Row], *, keeps_rows: bool) -> None:
        """Append the answers to one batch."""
        assert observed.seq is not None
        assert observed.incident is not None
        assert observed.event is not None
        self.seq += observed.seq
        self.score += observed.score
        self.threshold += observed.threshold
        self.flag += observed.is_anomaly
        self.severity += observed.severity
        self.incident += observed.incident
        self.incident_events.update(filter(None, observed.event))
        self.label += [row.label for row in rows]
        if keeps_rows:
            self.batches.append(np.array([row.values for row in rows], dtype=np.float64))
            self.stamps += [row.timestamp for row in rows]


class Feed:
    """One running replay.

    An earlier replay of the same plan has posted `already` rows; they get only the labels that are still due. `names`
    go with the first batch, so that a stream which it creates knows the names of its features.
    """

    def __init__(
        self,
        client: Client,
        plan: Plan,
        *,
        already: int = 0,
        names: Sequence[str] | None = None,
        stopping: Callable[[], bool] = lambda: False,
        posted: Callable[[int], object] = lambda _: None,
    ) -> None:
        self.outcome = Outcome()
        self._client = client
        self._plan = plan
        self._already = already
        self._names = names
        self._stopping = stopping
        self._posted = posted
        self._queue = LabelQueue(plan.label_delay, plan.label_every)
        self._lot = np.random.default_rng(plan.seed)
        self._batch: list[tuple[Row, Revealed | None]] = []

    def run(self, rows: Iterable[Row]) -> None:
        """Feed rows until they end, the plan reaches its limit, or somebody stops it."""
        last = None if self._plan.limit is None else self._already + self._plan.limit
        position = 0
        for position, row in enumerate(itertools.islice(rows, last), start=1):
            if self._stopping():
                break
            self._take(position, row)
        self._finish(position)

    def _take(self, position: int, row: Row) -> None:
        revealed = self._reveal(position, row)
        if position <= self._already:
            self._pass_over(position)
            return
        self._batch.append((row, revealed))
        stop = self._queue.next_stop()
        if len(self._batch) == self._plan.batch_size or (stop is not None and stop <= position):
            self._post(position)

    def _reveal(self, position: int, row: Row) -> Revealed | None:
        # drawn for every row, so that a resumed replay draws the same numbers
        chosen = self._lot.random() < self._plan.label_rate
        if row.label is None or not chosen:
            return None
        revealed = Revealed(position, row.label, seq=position)
        self._queue.add(revealed)
        return revealed

    def _pass_over(self, position: int) -> None:
        due = self._queue.due(position)
        # the earlier replay may or may not have sent the labels due just where it ended; twice does no harm
        if position == self._already:
            self._send_labels(due)

    def _post(self, position: int) -> None:
        rows = [row for row, _ in self._batch]
        observed = self._client.observe(self._plan.stream, self._samples(rows), _ids(rows), _timestamps(rows))
        for (_, revealed), seq in zip(self._batch, observed.seq or [], strict=True):
            if revealed:
                revealed.seq = seq
        self._batch.clear()
        self.outcome.add(observed, rows, keeps_rows=self._plan.keeps_rows)
        self._posted(len(rows))
        self._send_labels(self._queue.due(position))

    def _samples(self, rows: Sequence[Row]) -> list[list[float | None]] | list[dict[str, float | None]]:
        names, self._names = self._names, None
        if names is None:
            return [row.values for row in rows]
        return [dict(zip(names, row.values, strict=True)) for row in rows]

    def _finish(self, position: int) -> None:
        self.outcome.stopped = self._stopping()
        if self.outcome.stopped:
            return
        if self._batch:
            self._post(position)
        if self._plan.final_labels:
            self._send_labels(self._queue.rest())

    def _send_labels(self, labels: Sequence[Revealed]) -> None:
        if labels:
            self.outcome.sent.append((len(self.outcome.score), [x.position - self._already - 1 for x in labels]))
        for start in range(0, len(labels), MOST_LABELS_AT_ONCE):
            some = labels[start : start + MOST_LABELS_AT_ONCE]
            answer = self._client.feedback(self._plan.stream, [{"seq": x.seq, "anomaly": x.anomaly} for x in some])
            self.outcome.label_outcomes.update(answer.outcome)
            self.outcome.incident_events["accepted"] += len(answer.accepted)


def _ids(rows: Sequence[Row]) -> list[str | None] | None:
    ids = [row.id or None for row in rows]
    return ids if any(ids) else None


def _timestamps(rows: Sequence[Row]) -> list[float] | None:
    timestamps = [row.timestamp for row in rows if row.timestamp is not None]
    return timestamps or None
