"""The figures of one stream, kept up to date as it changes, so that a scrape of thousands only reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from core import Costs

RECENT_FLAGS: Final = 1000
RECENT_SCORES: Final = 100
USUAL_SECONDS: Final = 3600.0
TRUSTED: Final = 100
"""The flag rate begins as if this many samples had been flagged at the expected rate."""
BEYOND_NATS: Final = 20.0
FAR_NATS: Final = 1e9
DRIFT_NATS: Final = 3.0


@dataclass(slots=True)
class RunningMean:
    """The mean of all numbers so far, later of about the last `window`, with older ones counting less."""

    window: int
    mean: float = 0.0
    n: int = 0

    def add(self, mean: float, count: int) -> None:
        """Add this many numbers with this mean."""
        self.n = min(self.n + count, self.window)
        self.mean += (mean - self.mean) * min(count / self.n, 1.0)


@dataclass(slots=True, eq=False)
class StreamFigures:
    """The figures of a stream; None is unknown.

    expected_flag_rates are shares of all samples, by the truth about them.
    incident is the id of the open one, 0 if there is none; incidents counts those opened so far.
    log_loss is the mean of the recent scores, and usual_log_loss follows it within the hour: the rise between them
    tells whether the model still fits.
    """

    stream: str
    expected_flag_rates: Mapping[str, float]
    samples: int = 0
    samples_needed: int = 0
    is_warming_up: bool = False
    nodes: int = 1
    splits: int = 0
    threshold: float | None = None
    score: float | None = None
    severity: float | None = None
    incident: int = 0
    incidents: int = 0
    log_loss: float | None = None
    usual_log_loss: float | None = None
    log_loss_rise: float | None = None
    confusion: tuple[int, int, int, int] = (0, 0, 0, 0)
    cost: float = 0.0
    best_fixed_cost: float = 0.0
    snapshot_bytes: int = 0
    log_samples: int = 0
    unsaved_events: int = 0
    replay_seconds: float = 0.0
    expected_flag_rate: float = field(init=False)
    flag_rate: float = field(init=False)
    _flags: RunningMean = field(init=False)
    _recent_scores: RunningMean = field(init=False)
    _log_loss_as_of: float = 0.0

    def __post_init__(self) -> None:
        self.expected_flag_rate = sum(self.expected_flag_rates.values())
        self.flag_rate = self.expected_flag_rate
        self._flags = RunningMean(RECENT_FLAGS, self.expected_flag_rate, TRUSTED)
        self._recent_scores = RunningMean(RECENT_SCORES)

    @property
    def has_drifted(self) -> bool:
        """Tell whether the samples have become twenty times less likely, so that the model no longer fits."""
        return self.log_loss_rise is not None and self.log_loss_rise > DRIFT_NATS

    def expect(self, flag_rates: Mapping[str, float]) -> None:
        """Expect other shares of flagged samples from now on."""
        self.expected_flag_rates, self.expected_flag_rate = flag_rates, sum(flag_rates.values())

    def take_scores(self, scores: Sequence[float], thresholds: Sequence[float], flags: int, now: float) -> None:
        """Add at least one score, with its threshold; a score counts at most BEYOND_NATS above it.

        One outlier of a million nats says nothing of how well the model fits the others.
        """
        n = len(scores)
        self.score = scores[-1]
        self._flags.add(flags / n, n)
        self.flag_rate = self._flags.mean
        total = sum(map(min, scores, [met + BEYOND_NATS for met in thresholds]))
        # scores may be the largest double
        self._recent_scores.add(max(-FAR_NATS, min(total / n, FAR_NATS)), n)
        if self._recent_scores.n == RECENT_SCORES:
            self._take_log_loss(self._recent_scores.mean, now)

    @property
    def is_in_incident(self) -> bool:
        """Tell whether an incident is open."""
        return self.incident > 0

    def take_costs(self, costs: Costs) -> None:
        """Set the costs of the decisions on labelled samples."""
        self.confusion = costs.true_alarms, costs.false_alarms, costs.true_passes, costs.misses
        self.cost, self.best_fixed_cost = costs.cost, costs.best_fixed_cost

    def _take_log_loss(self, mean: float, now: float) -> None:
        """Move the usual log-loss towards the previous one, by the time since then, and measure the new one's rise."""
        if self.log_loss is None or self.usual_log_loss is None:
            self.usual_log_loss = mean
        else:
            passed = min(max(now - self._log_loss_as_of, 0.0) / USUAL_SECONDS, 1.0)
            self.usual_log_loss += (self.log_loss - self.usual_log_loss) * passed
        self.log_loss, self._log_loss_as_of = mean, now
        self.log_loss_rise = mean - self.usual_log_loss
