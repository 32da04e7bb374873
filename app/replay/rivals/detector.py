"""Our own detector under another profile, in this process."""

from collections import deque

import numpy as np

from app.replay.rivals.rival import Bools, Decisions, Floats, Integers
from core import Detector, DetectorConfig, Records


class OwnDetector:
    """A detector with a threshold of its own; it keeps records only as long as their labels may come."""

    def __init__(self, config: DetectorConfig) -> None:
        self._detector = Detector(config)
        self._kept: deque[Records] = deque()
        self._first_kept = 0

    def decide(self, X: Floats, times: Floats | None) -> Decisions:
        """Observe the samples."""
        seen = self._detector.observe(X, times)
        self._kept.append(seen.records)
        return Decisions(seen.score, seen.is_anomaly)

    def label(self, positions: Integers, anomalous: Bools) -> None:
        """Send the labels to the detector, and forget the records before them."""
        if not len(positions):
            return
        while self._first_kept + len(self._kept[0]) <= positions[0]:
            self._first_kept += len(self._kept.popleft())
        needed, end = [], self._first_kept
        for records in self._kept:
            if end > positions[-1]:
                break
            needed.append(records)
            end += len(records)
        told = Records.concatenate(needed)[positions - self._first_kept]
        self._detector.feedback(told, np.asarray(anomalous).tolist())
