"""Scores of ordinary samples and their tail in plain loops: the specification of core/threshold/ordinary_scores."""

from math import exp, log, log10
from sys import float_info

from core.threshold.ordinary_scores import (
    CAPACITY,
    ENOUGH,
    FIT_SHARE,
    KEPT_AT_FIRST,
    REFIT_EVERY,
    TAIL,
    TOLERANCE,
)


class NaiveOrdinary:
    """Keeps every score since it began, with the seq of its sample, 0 for none, and looks only at those that count.

    anomalous holds the samples that are labelled so; their scores keep their places, and do not count
    while there are ENOUGH others.
    """

    def __init__(self, anomalous: set[int]) -> None:
        self.all: list[tuple[int, float]] = []
        self.anomalous = anomalous
        self.start, self.scale = 0.0, TOLERANCE

    def window(self) -> list[tuple[int, float]]:
        """The newer half and KEPT_AT_FIRST more, at most CAPACITY."""
        n = len(self.all)
        return self.all[n - min(n, n // 2 + KEPT_AT_FIRST, CAPACITY) :]

    def kept(self) -> list[float]:
        """Those of the window that count, in rising order."""
        all_count = self.all_count()
        return sorted(score for seq, score in self.window() if all_count or seq not in self.anomalous)

    def all_count(self) -> bool:
        return sum(1 for seq, _ in self.window() if seq not in self.anomalous) < ENOUGH

    def label(self, seq: int, label: int) -> None:
        """Fit the tail again if a score of the window counts from now on, or does not any more."""
        changes = (label > 0) != (seq in self.anomalous)
        (self.anomalous.add if label > 0 else self.anomalous.discard)(seq)
        if changes and any(seq == other for other, _ in self.window()):
            self.fit()

    def add(self, seq: int, score: float) -> bool:
        """Whether the tail was fitted: every step-th time, step a power of two up to REFIT_EVERY, n / FIT_SHARE.

        And as soon as there are ENOUGH without those that are set aside, or not any more.
        """
        before = self.all_count()
        self.all.append((seq, score))
        step = 1
        while 2 * step <= min(len(self.all) // FIT_SHARE, REFIT_EVERY):
            step *= 2
        if len(self.all) % step and before == self.all_count():
            return False
        self.fit()
        return True

    def begin(self, scores: list[float]) -> None:
        """Begin with these scores, of no known samples, the newer half and KEPT_AT_FIRST more of what has been."""
        before = max(len(scores) - 2 * KEPT_AT_FIRST, 0)
        self.all = [(0, score) for score in [0.0] * before + scores]
        self.fit()

    def fit(self) -> None:
        half, quarter, start, far = (self.quantile(share) for share in (0.5, 0.25, TAIL, TAIL / 4))
        self.start = start
        self.scale = max(
            TOLERANCE, (start - half) / log(0.5 / TAIL), (start - quarter) / log(0.25 / TAIL), (far - start) / log(4)
        )

    def quantile(self, share: float) -> float:
        """The score that this share of the kept ones exceeds, between two of them in proportion."""
        ordered = self.kept()
        n = len(ordered)
        position = min(max((1 - share) * (n + 1) - 1, 0), n - 1)
        below = int(position)
        above = min(below + 1, n - 1)
        share = position - below
        return ordered[below] * (1 - share) + ordered[above] * share  # a score may equal it: not another rounding

    def exceeded_by(self, chance: float) -> float:
        if chance >= TAIL:
            return min(self.quantile(chance), self.start)
        return self.start + self.scale * log(TAIL / chance)

    def chance(self, score: float) -> float:
        """That an ordinary score is as high: inside its rank; beyond the mean of a rate with a Gamma(1, 1) prior.

        The rate is that of the tail times what is seen over what is expected.
        """
        ordered = self.kept()
        if score > self.start:
            reached = sum(1 for other in ordered if other >= score - TOLERANCE)
            tail = TAIL * exp(-(score - self.start) / self.scale)
            return min(TAIL, tail * (1 + reached) / (1 + len(ordered) * tail))
        higher = sum(1 for other in ordered if other > score)
        return max(TAIL, (higher + 0.5) / (len(ordered) + 1))

    def threshold(self, chance: float) -> float:
        """The least score beyond which every chance is below this one."""
        ordered = self.kept()
        if len(ordered) < ENOUGH:
            return float_info.max
        if chance >= TAIL:
            return self.exceeded_by(chance)
        at = [self.lowest(chance, reached) for reached in range(len(ordered) + 1)]
        beyond = [score for score in (*at, *(other + TOLERANCE for other in ordered)) if score >= at[0]]
        fits = (s for s in sorted(beyond) if s >= at[sum(1 for other in ordered if other + TOLERANCE > s)])
        return next(fits)

    def lowest(self, chance: float, reached: int) -> float:
        """The score of this chance if so many others are as high: tail (1 + reached) / (1 + n tail) = chance."""
        share = chance / (1 + reached)
        if share * len(self.kept()) >= 1:
            return self.start
        return self.exceeded_by(min(TAIL, share / (1 - share * len(self.kept()))))

    def severity(self, score: float) -> float:
        """-log10 of the chance, which may itself be too small for a double."""
        if not self.all or score <= self.start:
            return -log10(self.chance(score)) if self.all else 0.0
        beyond = (score - self.start) / self.scale
        reached = sum(1 for other in self.kept() if other >= score - TOLERANCE)
        expected = len(self.kept()) * TAIL * exp(-beyond)
        return -log10(TAIL) + max(0.0, beyond / log(10) - log10((1 + reached) / (1 + expected)))
