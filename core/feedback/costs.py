"""What the decisions turned out to cost, by the labels: confusion counts, rates, cost, the best fixed threshold."""

from array import array
from bisect import bisect_left
from dataclasses import dataclass
from math import inf, nextafter, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take

MAX_BINS: Final = 2048
MERGED_SHARE: Final = 8
"""When there are more bins, one in MERGED_SHARE is merged away. Chosen by hand: they bound memory and work."""
FEWEST_UNFLAGGED: Final = 20
"""With fewer labels of unflagged samples recall is unknown. Chosen by hand."""
Z_95: Final = 1.959963984540054
"""The 97.5 % quantile of the standard normal: the ends of a 95 % interval."""

Estimate = tuple[float | None, float | None, float | None]
"""A share, and the ends of its interval; None when they cannot be known."""
UNKNOWN: Final[Estimate] = (None, None, None)


@dataclass(frozen=True, slots=True)
class Costs:
    """Totals over the labelled samples that had a decision.

    cost is C_1 for each miss and C_-1 for each false alarm. best_fixed_cost is what the best fixed threshold in
    hindsight, best_fixed_threshold in nats, would have cost; regret is the difference, below 0 if the moving threshold
    did better than any fixed one. labels is how many labelled samples these are.

    precision and recall are shares from 0 to 1, with 95 % intervals, or None when they cannot be known. They are
    estimates for all samples if flagged samples get labels whatever their truth, and unflagged ones do too. The
    interval of precision is Wilson's; that of recall joins two of them, and is wider.
    """

    true_alarms: int
    false_alarms: int
    misses: int
    true_passes: int
    cost: float
    best_fixed_cost: float
    best_fixed_threshold: float | None
    regret: float
    precision: float | None
    precision_low: float | None
    precision_high: float | None
    recall: float | None
    recall_low: float | None
    recall_high: float | None

    @property
    def labels(self) -> int:
        """Labelled samples that had a decision."""
        return self.true_alarms + self.false_alarms + self.misses + self.true_passes


class RunningCosts:
    """Keeps the totals up to date while labels come, change and go, in bounded memory.

    Decisions are kept as totals, decided = [passed, flagged], and labelled scores as counts in at most MAX_BINS bins. A
    bin reaches from its lowest score to its highest, and every score between them belongs to it, so the cost of the cut
    at each upper end is exact. Merging two neighbours gives up the cut between them. The purest pairs are merged first:
    between scores of one class no cut is ever the best. So the best cost is too high by no more than what the cheaper
    class of one bin costs.
    """

    def __init__(self, cost_anomalous: float, cost_normal: float) -> None:
        self._cost_anomalous, self._cost_normal = cost_anomalous, cost_normal
        self._low: array[float] = array("d")
        self._top: array[float] = array("d")
        self._normal, self._anomalous = array("q"), array("q")
        self._confusion = [[0, 0], [0, 0]]
        self.decided = [0, 0]

    @property
    def n_flagged(self) -> int:
        """Samples flagged so far."""
        return self.decided[1]

    def count(self, flagged: BoolArray) -> None:
        """Count decisions (n,), True for flagged."""
        n_flagged = int(np.count_nonzero(flagged))
        self.decided[0] += len(flagged) - n_flagged
        self.decided[1] += n_flagged

    def count_one(self, *, flagged: bool) -> None:
        """Count one decision."""
        self.decided[flagged] += 1

    def relabel(self, score: float, flagged: bool, old: int, new: int) -> None:
        """Change the label of a sample with this score and decision: +1 anomalous, -1 normal, 0 none."""
        if old != 0:
            counts = self._counts(old)
            counts[self._bin_counting(score, counts)] -= 1
            self._confusion[int(flagged)][int(old > 0)] -= 1
        if new != 0:
            at = self._bin(score)
            self._counts(new)[at] += 1
            self._confusion[int(flagged)][int(new > 0)] += 1
        if len(self._top) > MAX_BINS:
            self._merge_purest()

    def totals(self) -> Costs:
        """Give the totals so far."""
        (true_passes, misses), (false_alarms, true_alarms) = self._confusion
        cost = misses * self._cost_anomalous + false_alarms * self._cost_normal
        best_cost, best_threshold = self._best_fixed()
        return Costs(
            true_alarms,
            false_alarms,
            misses,
            true_passes,
            cost,
            best_cost,
            best_threshold,
            cost - best_cost,
            *self._precision(),
            *self._recall(),
        )

    def _precision(self) -> Estimate:
        false_alarms, true_alarms = self._confusion[1]
        alarms = true_alarms + false_alarms
        return wilson(true_alarms, alarms) if alarms else UNKNOWN

    def _recall(self) -> Estimate:
        """The flagged share of all anomalies, estimated from the labelled shares of flagged and unflagged samples.

        Unknown without a label of a flagged sample, with fewer than FEWEST_UNFLAGGED of others, or with no anomaly.
        """
        (true_passes, misses), (false_alarms, true_alarms) = self._confusion
        alarms, passes, (passed, flagged) = true_alarms + false_alarms, true_passes + misses, self.decided
        if not (alarms and flagged) or passes < FEWEST_UNFLAGGED or true_alarms + misses == 0:
            return UNKNOWN
        found = [flagged * share for share in wilson(true_alarms, alarms)]
        missed = [passed * share for share in wilson(misses, passes)]
        recall, low, high = (found[i] / (found[i] + missed[j]) for i, j in ((0, 0), (1, 2), (2, 1)))
        return recall, low, high

    def state(self) -> dict[str, NDArray[Any]]:
        """Give the arrays of a snapshot, by name."""
        return {
            "outcome_low": np.array(self._low),
            "outcome_top": np.array(self._top),
            "outcome_counts": self._table(),
            "outcome_confusion": np.array(self._confusion, np.int64),
            "outcome_decided": np.array(self.decided, np.int64),
        }

    @staticmethod
    def check(arrays: Arrays) -> None:
        """Raise InvalidSnapshot if no labels could have produced this state."""
        top = take(arrays, "outcome_top", np.float64, (-1,))
        counts = take(arrays, "outcome_counts", np.int64, (len(top), 2))
        confusion = take(arrays, "outcome_confusion", np.int64, (2, 2))
        decided = take(arrays, "outcome_decided", np.int64, (2,))
        low = take(arrays, "outcome_low", np.float64, (len(top),)) if "outcome_low" in arrays else top
        if len(top) > MAX_BINS or not ((low <= top).all() and (low[1:] > top[:-1]).all()):
            raise InvalidSnapshot("its labelled scores are not in order")
        if (
            not all(((a >= 0) & (a < 2**40)).all() for a in (counts, confusion))
            or not ((decided >= 0) & (decided < 2**62)).all()
        ):
            raise InvalidSnapshot("its counts of labels or decisions are out of range")
        if (counts.sum(0) != confusion.sum(0)).any() or (confusion.sum(1) > decided).any():
            raise InvalidSnapshot("its counts of labels do not fit together")

    def load(self, arrays: Arrays) -> None:
        """Go on from a state that check has passed; one of version 2 does not know the lower ends of its bins."""
        top = arrays["outcome_top"]
        self._set_bins(arrays.get("outcome_low", top), top, arrays["outcome_counts"])
        self._confusion, self.decided = arrays["outcome_confusion"].tolist(), arrays["outcome_decided"].tolist()

    def _counts(self, label: int) -> "array[int]":
        return self._anomalous if label > 0 else self._normal

    def _table(self) -> IntArray:
        """Normal and anomalous labels of each bin, (n, 2)."""
        return np.stack([np.array(self._normal), np.array(self._anomalous)], axis=1)

    def _set_bins(self, low: FloatArray, top: FloatArray, counts: IntArray) -> None:
        self._low, self._top = array("d", low.tolist()), array("d", top.tolist())
        self._normal, self._anomalous = array("q", counts[:, 0].tolist()), array("q", counts[:, 1].tolist())

    def _bin(self, score: float) -> int:
        """The bin of a score, made if there is none."""
        at = bisect_left(self._top, score)
        if at == len(self._top) or score < self._low[at]:
            self._low.insert(at, score)
            self._top.insert(at, score)
            self._normal.insert(at, 0)
            self._anomalous.insert(at, 0)
        return at

    def _bin_counting(self, score: float, counts: "array[int]") -> int:
        """The bin that counted this score; in a state of version 2 it may be one further up."""
        at = bisect_left(self._top, score)
        while not counts[at]:
            at += 1
        return at

    def _best_fixed(self) -> tuple[float, float | None]:
        if not self._top:
            return 0.0, None
        normal, anomalous = np.array(self._normal), np.array(self._anomalous)
        step = anomalous * self._cost_anomalous - normal * self._cost_normal
        cost = normal.sum() * self._cost_normal + np.append(0.0, step.cumsum())  # of a cut below all, and at each top
        best = int(cost.argmin())
        cut = self._top[best - 1] if best else nextafter(self._low[0], -inf)
        return max(float(cost[best]), 0.0), cut

    def _merge_purest(self) -> None:
        """Merge those neighbours that mix the classes least, one bin in eight: finding them costs more than merging."""
        counts = self._table()
        mixed = (counts[:-1] + counts[1:]).min(1)
        joined: set[int] = set()
        for at in mixed.argsort(kind="stable").tolist():
            if len(joined) >= max(1, MAX_BINS // MERGED_SHARE):
                break
            if not {at - 1, at + 1} & joined:
                joined.add(at)
        lower = np.array(sorted(joined))
        counts[lower + 1] += counts[lower]
        low, top = np.delete(np.array(self._low), lower + 1), np.delete(np.array(self._top), lower)
        self._set_bins(low, top, np.delete(counts, lower, axis=0))


def wilson(hits: int, n: int) -> tuple[float, float, float]:
    """Give the share hits / n, n > 0, and its 95 % interval (Wilson 1927).

    >>> [round(v, 3) for v in wilson(9, 10)]
    [0.9, 0.596, 0.982]
    """
    share, extra = hits / n, Z_95**2 / n
    middle = (share + extra / 2) / (1 + extra)
    half = Z_95 / (1 + extra) * sqrt(share * (1 - share) / n + extra / (4 * n))
    return share, 0.0 if hits == 0 else middle - half, 1.0 if hits == n else middle + half
