"""Feeds the made-up streams to a service, and some of their labels, late."""

import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from app.demo.reading import Reading
from itan_client import Client

LABEL_DELAY = 60
LABELLED_FLAGS, LABELLED_OTHERS = 0.6, 0.1


class Feeder:
    """Posts readings, and later the labels of most flagged ones and a few others."""

    def __init__(self, client: Client, stream: str, readings: Iterator[Reading], seed: int) -> None:
        self._client, self._stream, self._readings = client, stream, readings
        self._lot = random.Random(seed)  # noqa: S311 - nothing secret is drawn
        self._due: deque[tuple[int, bool]] = deque()
        self.n_sent = self.n_flagged = 0

    def post(self, times: Sequence[float]) -> None:
        """Post a reading for each of these times, then the labels that are due."""
        batch = [next(self._readings) for _ in times]
        told = self._client.observe(self._stream, [reading.values for reading in batch], None, times)
        assert told.seq is not None
        for reading, seq, flagged in zip(batch, told.seq, told.is_anomaly, strict=True):
            if self._lot.random() < (LABELLED_FLAGS if flagged else LABELLED_OTHERS):
                self._due.append((seq, reading.is_fault))
        self.n_sent += len(batch)
        self.n_flagged += sum(told.is_anomaly)
        self._label(until=told.seq[-1] - LABEL_DELAY)

    def _label(self, until: int) -> None:
        labels = []
        while self._due and self._due[0][0] <= until:
            seq, is_fault = self._due.popleft()
            labels.append({"seq": seq, "anomaly": is_fault})
        if labels:
            self._client.feedback(self._stream, labels)


def feed_past(feeder: Feeder, times: Sequence[float]) -> None:
    """Post a reading for each of these times, in batches."""
    for first in range(0, len(times), LABEL_DELAY):
        feeder.post(times[first : first + LABEL_DELAY])


def feed_live(
    feeders: Mapping[Feeder, Callable[[], float]],
    n: int | None,
    per_second: float,
    clock: Callable[[], float],
    wait: Callable[[float], bool],
) -> None:
    """Post one reading after the other at that rate, each feeder by its clock: n, or until the wait is interrupted."""
    start, sent = clock(), 0
    while n is None or sent < n:
        sent += 1
        if wait(max(0.0, start + sent / per_second - clock())):
            return
        for feeder, time in feeders.items():
            feeder.post([time()])
