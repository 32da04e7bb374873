"""Incidents: runs of flagged samples, from the one that opens a run to its end."""

from math import isqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.config import DetectorConfig
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take
from core.threshold.ordinary_scores import ENOUGH
from core.threshold.sample_scores import SampleScores, check_seqs

NOTHING, OPENED, CLOSED, ACCEPTED = range(4)
INCIDENT_EVENTS: Final = ("", "opened", "closed", "accepted")
"""What may happen to an incident at a sample, by its code."""
OUTVOTED: Final = 10
"""Normal labels that an anomalous one outweighs: where anomalies are frequent, an incident holds false alarms too."""
MOVING: Final = 10
"""A flagged sample whose values all move counts as this many in which one stands still."""


class Incidents:
    """The incident that is open, if any: id is the seq of the sample that opened it, else 0.

    It closes after close_samples samples in a row that are not flagged, or close_seconds after the last flagged one.
    After accept_samples flagged samples it is accepted: what it shows is the new normal. A sample in which a value
    stands still, longer than it ever did while ordinary, counts a tenth, for a broken thing shows the same for long.
    Labels vote: while one of its samples is labelled anomalous, it is not accepted; while more than OUTVOTED flagged
    ones are labelled normal for each of those, and at least one, it is dismissed, and ends before the next sample.
    """

    def __init__(self, config: DetectorConfig) -> None:
        self._close_samples = config.incident_close_samples
        self._close_seconds = config.incident_close_seconds
        self._accept_at = MOVING * config.incident_accept_samples
        self.n_opened = 0
        self._end()

    def _end(self) -> None:
        self.id = 0
        self.n_flagged = self._n_moving = self._progress = self._n_passed = self._n_anomalous = self._n_normal = 0
        self.peak, self._flagged_at = -np.inf, np.nan
        self.scores = SampleScores()

    def adopt(self, other: "Incidents") -> None:
        """Go on from those of another config; an open one that this config had ended ends with the next sample."""
        self.load(other.state())
        self._n_passed = min(self._n_passed, self._close_samples - 1)

    def pass_by(self, time: float) -> int:
        """A sample that is not flagged comes: CLOSED if the incident ends with it."""
        if self.id == 0:
            return NOTHING
        self._n_passed += 1
        if self._n_passed < self._close_samples and not self._is_long_ago(time):
            return NOTHING
        self._end()
        return CLOSED

    def expire(self, time: float) -> None:
        """Close the incident if its last flagged sample is too long before the one of this time."""
        if self.id and self._is_long_ago(time):
            self._end()

    def flag(self, seq: int, score: float, time: float, *, still: bool) -> int:
        """A flagged sample comes: OPENED with the first one, ACCEPTED with the last."""
        event = NOTHING if self.id else OPENED
        if event == OPENED:
            self.id, self.n_opened = seq, self.n_opened + 1
        self.n_flagged += 1
        self._n_moving += not still
        self._progress += 1 if still else MOVING
        self._n_passed, self._flagged_at = 0, time
        self.peak = max(self.peak, score)
        self.scores.add(seq, score)
        if len(self.scores) > ENOUGH:
            self.scores.drop()
        return event if self.is_short or self._n_anomalous else ACCEPTED

    def counts_as_ordinary(self, *, still: bool) -> bool:
        """Whether the newest flagged sample counts as ordinary all the same: the 1st, 4th, 9th, ... that moves does.

        So an incident is not its own yardstick, and what comes back in each is learned in the end.
        """
        return not still and isqrt(self._n_moving) ** 2 == self._n_moving

    @property
    def n_ordinary(self) -> int:
        """How many flagged samples of the open incident counted as ordinary."""
        return isqrt(self._n_moving)

    @property
    def is_short(self) -> bool:
        """Whether the open incident has too few flagged samples to be accepted, whatever labels say."""
        return self._progress < self._accept_at

    @property
    def is_dismissed(self) -> bool:
        """Whether labels say that it is the new normal."""
        return self._n_normal > OUTVOTED * self._n_anomalous

    def label(self, label: int, old: int, *, flagged: bool) -> None:
        """A sample of the open incident is labelled +1 (anomalous), -1 (normal) or 0 (not any more), after old."""
        self._n_anomalous += (label > 0) - (old > 0)
        self._n_normal += flagged * ((label < 0) - (old < 0))

    def accept(self) -> SampleScores:
        """End the open incident as the new normal; its last scores."""
        scores = self.scores
        self._end()
        return scores

    def _is_long_ago(self, time: float) -> bool:
        """Whether the last flagged sample is; never if either of them has no time."""
        return self._close_seconds is not None and time - self._flagged_at > self._close_seconds

    def renumber(self, shift: int) -> None:
        """Follow the seqs of the samples when they are numbered anew."""
        self.id += shift if self.id else 0
        self.scores.renumber(shift)

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        counts = [self.n_flagged, self._n_moving, self._progress, self._n_passed, self._n_anomalous, self._n_normal]
        return {
            "incident": np.array([self.n_opened, self.id, *counts]),
            "incident_scores": np.array([self.peak, *self.scores.scores()]) if self.id else np.zeros(0),
            "incident_seqs": self.scores.seqs(),
            "incident_time": np.array([self._flagged_at]),
        }

    def check(self, arrays: Arrays, next_seq: int) -> None:
        """InvalidSnapshot if these cannot be its arrays."""
        n_opened, seq, *counts = take(arrays, "incident", np.int64, (8,)).tolist()
        n_flagged, n_moving, progress, n_passed, n_anomalous, n_normal = counts
        scores = take(arrays, "incident_scores", np.float64, (-1,))
        time = float(take(arrays, "incident_time", np.float64, (1,))[0])
        counted = n_flagged - n_moving + MOVING * n_moving
        is_open = (
            n_opened > 0
            and 0 < seq < next_seq
            and 0 <= n_moving <= n_flagged
            and 0 < n_flagged <= next_seq - seq
            and progress == counted
            and 0 <= n_passed < self._close_samples
            and 0 <= n_anomalous <= next_seq - seq
            and 0 <= n_normal <= n_flagged
            and len(scores) == 1 + min(n_flagged, ENOUGH)
            and scores[0] >= scores[1:].max()
        )
        is_closed = not any((seq, *counts)) and not len(scores) and np.isnan(time)
        if not (0 <= n_opened < 2**53 and (is_open or is_closed)) or np.isinf(time):
            raise InvalidSnapshot("its open incident is not one")
        check_seqs(arrays, "incident_seqs", max(len(scores) - 1, 0), next_seq)

    def load(self, arrays: Arrays) -> None:
        """Take over a state."""
        self._end()
        self.n_opened, self.id, *counts = arrays["incident"].tolist()
        self.n_flagged, self._n_moving, self._progress, self._n_passed, self._n_anomalous, self._n_normal = counts
        if self.id:
            self.peak = float(arrays["incident_scores"][0])
            self.scores = SampleScores.of(arrays["incident_scores"][1:], arrays["incident_seqs"])
        self._flagged_at = float(arrays["incident_time"][0])
