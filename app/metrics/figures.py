"""What is told of one stream, kept up to date as it changes, so that a scrape of thousands only reads."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from core.outcomes import Costs

RECENT_FLAGS: Final = 1000
RECENT_SCORES: Final = 100
USUAL_SECONDS: Final = 3600.0
TRUSTED: Final = 100
"""The flag rate begins as if so many samples had been flagged at the expected one."""
BEYOND_NATS: Final = 20.0
FAR_NATS: Final = 1e9


@dataclass(slots=True)
class RunningMean:
    """The mean of all numbers so far, then of about the last `window`, the older the less."""

    window: int
    mean: float = 0.0
    n: int = 0

    def add(self, mean: float, count: int) -> None:
        """Take in so many numbers of this mean."""
        self.n = min(self.n + count, self.window)
        self.mean += (mean - self.mean) * min(count / self.n, 1.0)


@dataclass(slots=True)
class StreamFigures:
    """How a stream stands; None is what cannot be known yet.

    log_loss is the mean of the recent scores, and usual_log_loss follows it within the hour: what lies between tells
    whether the model still fits.
    """

    expected_flag_rate: float
    samples: int = 0
    samples_needed: int = 0
    nodes: int = 1
    splits: int = 0
    threshold: float | None = None
    score: float | None = None
    usual_log_loss: float | None = None
    confusion: tuple[int, int, int, int] = (0, 0, 0, 0)
    cost: float = 0.0
    best_fixed_cost: float = 0.0
    snapshot_bytes: int = 0
    log_samples: int = 0
    unsaved_events: int = 0
    flag_rate: RunningMean = field(init=False)
    recent_scores: RunningMean = field(init=False)
    _usual_as_of: float = 0.0

    def __post_init__(self) -> None:
        self.flag_rate = RunningMean(RECENT_FLAGS, self.expected_flag_rate, TRUSTED)
        self.recent_scores = RunningMean(RECENT_SCORES)

    @property
    def log_loss(self) -> float | None:
        """The mean of the recent scores, once there are enough to tell."""
        return self.recent_scores.mean if self.recent_scores.n == RECENT_SCORES else None

    @property
    def log_loss_rise(self) -> float | None:
        """How far the recent scores lie above the usual ones."""
        return None if self.usual_log_loss is None else self.recent_scores.mean - self.usual_log_loss

    def take_scores(self, scores: Sequence[float], thresholds: Sequence[float], flags: int, now: float) -> None:
        """Take in scores and the thresholds that they met, at least one; a score counts no further than BEYOND_NATS.

        One outlier of a million nats says nothing of how well the model fits all others.
        """
        n = len(scores)
        self.score = scores[-1]
        self.flag_rate.add(flags / n, n)
        self._move_usual(now)
        held = [within(min(score, met + BEYOND_NATS)) for score, met in zip(scores, thresholds, strict=True)]
        self.recent_scores.add(sum(held) / n, n)

    def take_costs(self, costs: Costs) -> None:
        """Take in what the decisions on labelled samples turned out to cost."""
        self.confusion = costs.true_alarms, costs.false_alarms, costs.true_passes, costs.misses
        self.cost, self.best_fixed_cost = costs.cost, costs.best_fixed_cost

    def _move_usual(self, now: float) -> None:
        """Let the usual scores follow the recent ones, by the time that has passed."""
        recent = self.log_loss
        if recent is None:
            return
        if self.usual_log_loss is None:
            self.usual_log_loss = recent
        else:
            passed = min(max(now - self._usual_as_of, 0.0) / USUAL_SECONDS, 1.0)
            self.usual_log_loss += (recent - self.usual_log_loss) * passed
        self._usual_as_of = now


def within(nats: float) -> float:
    """Keep a score where sums of it are finite: it may be the largest double."""
    return max(-FAR_NATS, min(nats, FAR_NATS))
