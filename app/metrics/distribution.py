"""A histogram of numbers of either sign, cheap enough to take every score."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector

MOST_WAITING: Final = 4096
FAR: Final = 1e9
"""Numbers count no farther from 0 in the sum: it must stay finite, and a score may be the largest double."""


class Distribution(Collector):
    """Counts numbers by buckets, thousands at a time: prometheus_client's own histogram takes microseconds for each."""

    def __init__(self, name: str, text: str, bounds: Sequence[float], registry: CollectorRegistry) -> None:
        self._name, self._text = name, text
        self._bounds = np.array(bounds, np.float64)
        self._counts = np.zeros(len(bounds) + 1, np.int64)
        self._sum = 0.0
        self._waiting: list[float] = []
        registry.register(self)

    def add(self, numbers: Iterable[float]) -> None:
        """Take numbers that are not NaN."""
        self._waiting += numbers
        if len(self._waiting) > MOST_WAITING:
            self._count()

    def _count(self) -> None:
        numbers, self._waiting = np.array(self._waiting), []
        self._counts += np.bincount(np.searchsorted(self._bounds, numbers), minlength=len(self._counts))
        self._sum += float(np.clip(numbers, -FAR, FAR).sum())

    def collect(self) -> Iterable[Metric]:
        self._count()
        metric = Metric(self._name, self._text, "histogram")
        reached = self._counts.cumsum().tolist()
        for bound, count in zip([*map(str, self._bounds.tolist()), "+Inf"], reached, strict=True):
            metric.add_sample(f"{self._name}_bucket", {"le": bound}, count)
        # prometheus_client leaves these out where numbers can be negative; rates are taken of the count
        metric.add_sample(f"{self._name}_count", {}, reached[-1])
        metric.add_sample(f"{self._name}_sum", {}, self._sum)
        yield metric
