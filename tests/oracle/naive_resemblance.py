"""What labels add to scores, in plain loops: each figure anew from lists of all samples and labels so far."""

from math import log

import numpy as np

from core.config import DetectorConfig
from tests.oracle.naive_density import Vector


class NaiveResemblance:
    """Known anomalies and normals, and every ordinary sample with its score before anything was added."""

    def __init__(self, config: DetectorConfig) -> None:
        self.m = config.n_columns
        self.wanted = config.profile == "default" and config.learn_from != "labelled_normal"
        self.samples: list[tuple[Vector, float]] = []
        self.labelled: list[tuple[int, int, Vector]] = []

    def label(self, seq: int, label: int, x: Vector) -> None:
        self.labelled = [known for known in self.labelled if known[0] != seq]
        if label != 0:
            self.labelled.append((seq, label, x))
            alike = [known for known in self.labelled if known[1] == label]
            if len(alike) > 256:
                self.labelled.remove(alike[0])

    def known(self, label: int) -> list[Vector]:
        return [x for _, kind, x in self.labelled if kind == label]

    def added(self, x: Vector) -> float:
        """Eq. (36): nothing without a known anomaly, ten normals and twenty scores."""
        anomalies, normals = self.known(1), self.normals()
        if not self.wanted or not anomalies or len(normals) < 10 or self.settled() < 20:
            return 0.0
        worth = len(anomalies) / (len(anomalies) + 5)
        return worth * self.spread() * min(max(self.log_ratio(x, anomalies, normals), -2.0), 3.0)

    def log_ratio(self, x: Vector, anomalies: list[Vector], normals: list[Vector]) -> float:
        """Eq. (35)."""
        h = self.width(normals)
        floor = self.floor(anomalies, h)
        return log(self.density(x, anomalies, h) + floor) - log(self.density(x, normals, h) + floor)

    def width(self, normals: list[Vector]) -> float:
        return 0.1 * self.m * float(np.median([np.var([x[j] for x in normals]) for j in range(self.m)])) + 1e-6

    def floor(self, anomalies: list[Vector], h: float) -> float:
        """A tenth of what the median one of the last 32 known anomalies has of all the others."""
        n = len(anomalies)
        others = [
            sum(self.kernel(anomalies[i], b, h) for j, b in enumerate(anomalies) if j != i) / n
            for i in range(max(n - 32, 0), n)
        ]
        return 0.1 * max(float(np.median(others)), 1e-12)

    def density(self, x: Vector, known: list[Vector], h: float) -> float:
        return sum(self.kernel(x, other, h) for other in known) / len(known)

    def kernel(self, x: Vector, other: Vector, h: float) -> float:
        return (1 + float((x - other) @ (x - other)) / h) ** -2

    def normals(self) -> list[Vector]:
        """The labelled ones, filled up to 256 with the last of every eighth sample."""
        labelled = self.known(-1)
        settled = [x for x, _ in self.samples[: self.settled()]]
        return labelled + settled[7::8][::-1][: 256 - len(labelled)][::-1]

    def spread(self) -> float:
        """The 90 % quantile of the last 1000 scores above their median, or what a tail from the 75 % one has."""
        scores = sorted(score for _, score in self.samples[: self.settled()][-1000:])
        half = quantile(scores, 0.5)
        return min(quantile(scores, 0.9) - half, (quantile(scores, 0.75) - half) / log(2) * log(5))

    def settled(self) -> int:
        """Samples settle together: after n of them one more, or the largest power of two of at most n / 16 and 256."""
        n = 0
        while n + (step := self.step(n)) <= len(self.samples):
            n += step
        return n

    def step(self, n: int) -> int:
        return max(step for step in (1, 2, 4, 8, 16, 32, 64, 128, 256) if step == 1 or 16 * step <= n)


def quantile(ordered: list[float], share: float) -> float:
    """Interpolated between two of them."""
    place = share * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 2)
    return ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])
