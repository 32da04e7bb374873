"""What the decisions turned out to be worth, by the labels: confusion counts, rates, cost, the best fixed threshold."""

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
    """Running totals over the labelled samples that had a decision; best_fixed_threshold in nats, as scores are.

    regret is the cost beyond best_fixed_cost: below 0 where the threshold followed what no fixed one can. Precision and
    recall hold if labels are given to flagged samples whatever their truth, and to unflagged ones too. Precision has
    its 95 % Wilson interval; that of recall joins the intervals of both kinds, and is wider.
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
        """How many labelled samples these are."""
        return self.true_alarms + self.false_alarms + self.misses + self.true_passes


class RunningCosts:
    """Decisions as totals, and labelled scores as counts in bins, so that memory is bounded and labels can be revised.

    A bin reaches from its lowest score, low, to its highest, top, and whatever falls between belongs to it: the cut at
    each top has its exact cost. Merging two neighbours gives up the cut between them; purest pairs go first, and
    between scores of one class no cut is ever the best one. So the best cost is too high by no more than what the
    cheaper class of one bin costs.
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
        """How many samples were flagged."""
        return self.decided[1]

    def count(self, flagged: BoolArray) -> None:
        """Samples were decided: flagged (n,), or passed."""
        n_flagged = int(np.count_nonzero(flagged))
        self.decided[0] += len(flagged) - n_flagged
        self.decided[1] += n_flagged

    def relabel(self, score: float, flagged: bool, old: int, new: int) -> None:
        """A sample's label goes from old to new: +1 anomalous, -1 normal, 0 none."""
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
        """The totals so far."""
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
        """The flagged share of all anomalies; of each kind there are as many as its labels' share times its number.

        Unknown with no label of a flagged sample, fewer than FEWEST_UNFLAGGED of others, or no anomaly among them all.
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
        """Every array that a continuation needs, by name."""
        return {
            "outcome_low": np.array(self._low),
            "outcome_top": np.array(self._top),
            "outcome_counts": self._table(),
            "outcome_confusion": np.array(self._confusion, np.int64),
            "outcome_decided": np.array(self.decided, np.int64),
        }

    @staticmethod
    def check(arrays: Arrays) -> None:
        """InvalidSnapshot if a state does not fit together."""
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
        """Take over a state; one of version 2 does not say how far down its bins reach."""
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
        """Join the pairs of neighbours that mix the classes least, the lower one into the upper, one bin in eight.

        Many at once, since finding them costs more than joining them.
        """
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
    """A share of n > 0, and its 95 % interval (Wilson 1927).

    >>> [round(v, 3) for v in wilson(9, 10)]
    [0.9, 0.596, 0.982]
    """
    share, extra = hits / n, Z_95**2 / n
    middle = (share + extra / 2) / (1 + extra)
    half = Z_95 / (1 + extra) * sqrt(share * (1 - share) / n + extra / (4 * n))
    return share, 0.0 if hits == 0 else middle - half, 1.0 if hits == n else middle + half
