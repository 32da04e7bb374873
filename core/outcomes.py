"""What the decisions turned out to be worth, by the labels: confusion counts, cost, and the best fixed threshold."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take
from core.threshold import cost_of_cuts

MAX_BINS: Final = 2048


@dataclass(frozen=True, slots=True)
class Costs:
    """Running totals over the labelled samples that had a decision; best_fixed_threshold in nats, as scores are."""

    true_alarms: int
    false_alarms: int
    misses: int
    true_passes: int
    cost: float
    best_fixed_cost: float
    best_fixed_threshold: float | None

    @property
    def labels(self) -> int:
        """How many labelled samples these are."""
        return self.true_alarms + self.false_alarms + self.misses + self.true_passes


class Outcomes:
    """Labelled scores as counts in bins, so that memory is bounded and labels can be revised.

    A bin is named by its highest score. Merging two neighbours gives up the cuts between them only; purest pairs go
    first, and between scores of one class no cut is ever the best one.
    """

    def __init__(self, cost_anomalous: float, cost_normal: float) -> None:
        self._cost_anomalous, self._cost_normal = cost_anomalous, cost_normal
        self._top = np.zeros(0)
        self._counts = np.zeros((0, 2), np.int64)
        self._confusion = np.zeros((2, 2), np.int64)

    def move(self, score: float, flagged: bool, old: int, new: int) -> None:
        """A sample's label goes from old to new: +1 anomalous, -1 normal, 0 none."""
        if old != 0:
            at = self._bin_counting(score, int(old > 0))
            self._counts[at, int(old > 0)] -= 1
            self._confusion[int(flagged), int(old > 0)] -= 1
        if new != 0:
            at = self._bin(score)
            self._counts[at, int(new > 0)] += 1
            self._confusion[int(flagged), int(new > 0)] += 1
        if len(self._top) > MAX_BINS:
            self._merge_purest()

    def costs(self) -> Costs:
        """The totals so far."""
        (true_passes, misses), (false_alarms, true_alarms) = self._confusion.tolist()
        cost = misses * self._cost_anomalous + false_alarms * self._cost_normal
        best_cost, best_threshold = self._best_fixed()
        return Costs(true_alarms, false_alarms, misses, true_passes, cost, best_cost, best_threshold)

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        return {"outcome_top": self._top, "outcome_counts": self._counts, "outcome_confusion": self._confusion}

    def load(self, arrays: Arrays) -> None:
        """Take over a state; InvalidSnapshot if it does not fit."""
        self._top = take(arrays, "outcome_top", np.float64, (-1,))
        self._counts = take(arrays, "outcome_counts", np.int64, (len(self._top), 2))
        self._confusion = take(arrays, "outcome_confusion", np.int64, (2, 2))
        if len(self._top) > MAX_BINS or (np.diff(self._top) <= 0).any():
            raise InvalidSnapshot("its labelled scores are not in order")
        counts = self._counts, self._confusion
        bounded = all(((a >= 0) & (a < 2**40)).all() for a in counts)
        if not bounded or (self._counts.sum(0) != self._confusion.sum(0)).any():
            raise InvalidSnapshot("its counts of labels do not fit together")

    def _bin(self, score: float) -> int:
        """The bin of a score, made if there is none."""
        at = int(self._top.searchsorted(score))
        if at == len(self._top) or self._top[at] != score:
            self._top = np.insert(self._top, at, score)
            self._counts = np.insert(self._counts, at, 0, axis=0)
        return at

    def _bin_counting(self, score: float, anomalous: int) -> int:
        """The bin that counted this score: the next one up with such a label in it, since bins are joined upwards."""
        at = int(self._top.searchsorted(score))
        return at + int((self._counts[at:, anomalous] > 0).argmax())

    def _best_fixed(self) -> tuple[float, float | None]:
        if not len(self._top):
            return 0.0, None
        normal, anomalous = self._counts.T
        step = anomalous * self._cost_anomalous - normal * self._cost_normal
        cuts = np.concatenate([[np.nextafter(self._top[0], -np.inf)], self._top])
        cost = normal.sum() * self._cost_normal + cost_of_cuts(cuts, self._top, step)
        best = int(cost.argmin())
        return float(max(cost[best], 0.0)), float(cuts[best])

    def _merge_purest(self) -> None:
        """Join the two neighbours that mix the classes least, the lower one into the upper."""
        joined = self._counts[:-1] + self._counts[1:]
        at = int(joined.min(1).argmin())
        self._counts[at + 1] = joined[at]
        self._top, self._counts = np.delete(self._top, at), np.delete(self._counts, at, axis=0)
