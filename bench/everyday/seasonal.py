"""Peers that know the time: a z-score of the week, Holt-Winters, and rcf3 with the clock among its features."""

from importlib import import_module
from typing import Any, Final
from warnings import catch_warnings, simplefilter

import numpy as np
from scipy.stats import norm

from app.replay.rivals.rival import Decisions
from app.replay.rivals.windows import FilledIn
from bench.everyday.deciders import RATE, Contender, Ranked
from bench.everyday.situation import QUARTER
from bench.peers.forests import RandomCutForest
from core.arrays import FloatArray
from core.calendar import calendar_columns
from core.config import Calendar

DAY: Final = 96
WEEK: Final = 672
"""Quarters of an hour."""
SMOOTHING: Final = ("smoothing_level", "smoothing_seasonal")
CLOCK: Final = Calendar(("day", "week"), "UTC")


class OfTheWeek:
    """Distance from the mean of the same quarter of an hour of the week, in deviations from these means by all rows."""

    def __init__(self, m: int) -> None:
        self._n, self._sum = np.zeros(WEEK), np.zeros((WEEK, m))
        self._off = Spread(m)
        self._seen, self._threshold = FilledIn(), float(norm.isf(RATE / (2 * m)))

    def decide(self, X: FloatArray, times: FloatArray) -> Decisions:
        slots = (times // QUARTER).astype(int) % WEEK
        scores = np.array([self._next(x, slot) for x, slot in zip(self._seen.fill(X), slots.tolist(), strict=True)])
        return Decisions(scores, scores > self._threshold)

    def _next(self, x: FloatArray, slot: int) -> float:
        score = 0.0
        if self._n[slot]:
            off = x - self._sum[slot] / self._n[slot]
            score = float(np.abs(off / self._off.deviation).max())
            self._off.add(off)
        self._n[slot] += 1
        self._sum[slot] += x
        return score

    def label(self, rows: Any, said: Any) -> None:
        """Nothing: it has no use for labels."""


class Spread:
    """The deviation, about 0, of m features so far."""

    def __init__(self, m: int) -> None:
        self._n, self._squares = 0, np.zeros(m)

    @property
    def deviation(self) -> FloatArray:
        """(m,), infinite before there are enough."""
        return np.sqrt(self._squares / self._n) if self._n >= 32 else np.full(len(self._squares), np.inf)

    def add(self, off: FloatArray) -> None:
        """Count one distance (m,)."""
        self._n += 1
        self._squares = self._squares + off * off


class HoltWinters:
    """Distance from the forecast of additive seasons, in deviations of such distances before.

    Each day statsmodels smooths all rows so far and forecasts the next day: by the day from the third day on, by the
    week from the third week on. It looks for the smoothing of each feature once by the day, and once by the week.
    """

    def __init__(self, m: int) -> None:
        self._rows: list[FloatArray] = []
        self._forecast: FloatArray | None = None
        self._smoothing: dict[tuple[int, int], dict[str, float]] = {}
        self._off = Spread(m)
        self._seen, self._threshold = FilledIn(), float(norm.isf(RATE / (2 * m)))

    def decide(self, X: FloatArray, times: FloatArray) -> Decisions:
        scores = np.array([self._next(x) for x in self._seen.fill(X)])
        return Decisions(scores, scores > self._threshold)

    def _next(self, x: FloatArray) -> float:
        place, score = len(self._rows) % DAY, 0.0
        if place == 0 and len(self._rows) >= 2 * DAY:
            self._forecast = self._fit(np.array(self._rows))
        if self._forecast is not None:
            off = x - self._forecast[place]
            score = float(np.abs(off / self._off.deviation).max())
            self._off.add(off)
        self._rows.append(x)
        return score

    def _fit(self, X: FloatArray) -> FloatArray:
        """The forecast of the next day, (DAY, m)."""
        smoothing: Any = import_module("statsmodels.tsa.holtwinters").ExponentialSmoothing
        season = WEEK if len(X) >= 2 * WEEK else DAY
        forecasts = []
        for feature, column in enumerate(X.T):
            known = self._smoothing.get((feature, season))
            model = smoothing(column, seasonal="add", seasonal_periods=season, initialization_method="heuristic")
            with catch_warnings():
                simplefilter("ignore")  # of steps that did not converge: the best of them is taken
                fit = model.fit() if known is None else model.fit(optimized=False, **known)
            self._smoothing[feature, season] = {name: float(fit.params[name]) for name in SMOOTHING}
            forecasts.append(fit.forecast(DAY))
        return np.stack(forecasts, 1)

    def label(self, rows: Any, said: Any) -> None:
        """Nothing: it has no use for labels."""


class WithClock:
    """rcf3 over the features and the same columns of the calendar as ours, features in deviations of the first 64."""

    def __init__(self, m: int) -> None:
        self._ranked, self._seen = Ranked(RandomCutForest(m + 4 * len(CLOCK.periods))), FilledIn()
        self._first: FloatArray = np.zeros((0, m))

    def decide(self, X: FloatArray, times: FloatArray) -> Decisions:
        filled = self._seen.fill(X)
        self._first = np.concatenate([self._first, filled])[:64]
        deviation = self._first.std(0)
        scaled = (filled - self._first.mean(0)) / np.where(deviation > 0, deviation, 1.0)
        return self._ranked.decide(np.concatenate([scaled, calendar_columns(CLOCK, times)], 1), times)

    def label(self, rows: Any, said: Any) -> None:
        """Nothing: it has no use for labels."""


OF_THE_WEEK: Final = Contender("z-score of the week", lambda m, _: OfTheWeek(m))
SEASONAL: Final = (
    OF_THE_WEEK,
    Contender("Holt-Winters", lambda m, _: HoltWinters(m), "statsmodels"),
    Contender("rcf3 with the clock", lambda m, _: WithClock(m), "rcf3"),
)
