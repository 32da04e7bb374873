"""Scales that follow the samples, in plain loops: the specification of core/density/{spread,unscaled}."""

from math import isnan

import numpy as np

from core.density.spread import ENOUGH as ENOUGH_RECENT
from core.density.spread import EVERY, FAR, KEPT, STRIDE
from core.density.unscaled import ENOUGH, FEW
from tests.oracle.naive_density import Vector


class NaiveFeature:
    """One feature after the warm-up, and the values that it has shown since its scale was not told.

    known are its known values, in order; is_open tells whether its scale is not known yet.
    """

    def __init__(self, warmup: list[float], location: float, scale: float, rate: float) -> None:
        self.location, self.scale, self.rate = location, scale, rate
        self.known = [x for x in warmup if not isnan(x)]
        self.is_silent = not self.known
        self.is_open = quartile_spread(self.known) == 0
        self.first: list[float] = []
        n = len(self.differing())
        self.spread = self.told() if self.is_open and n >= FEW else None

    def differing(self) -> list[float]:
        """At most ENOUGH values that differ from the location, those in front that a new beginning has kept."""
        return [*self.first, *(x for x in self.known if x != self.location)][:ENOUGH]

    def wake(self, x: float) -> bool:
        """The next value comes and is not scored yet; whether it changes location or scale."""
        if not self.is_open or isnan(x):
            return False
        if self.is_silent:
            self.is_silent, self.location = False, x
            return True
        if not self.differing() and x != self.location:
            self.scale = abs(x - self.location)
            return True
        return False

    def show(self, x: float) -> None:
        """The value was scored."""
        self.spread = None
        if self.is_open and not isnan(x):
            self.known.append(x)
            if x != self.location and len(self.differing()) in (FEW, ENOUGH):
                self.spread = self.told()

    def told(self) -> tuple[float, bool] | None:
        """The spread that the values tell and whether it is coarse; None if too few differ: then it begins again."""
        shown = self.differing()
        if len(shown) < self.rate * len(self.known):
            self.first, self.known = shown[:1], []
            return None
        self.is_open = len(shown) < ENOUGH
        scaled = [(x - self.location) / self.scale for x in shown]
        distance = sorted(abs(z) for z in scaled)[(len(scaled) - 1) // 2]
        return max(quartile_spread(scaled), distance), quartile_spread(scaled) > 0


class NaiveSpreads:
    """The spread of each of m columns in the scaled space, by the samples that were learned; n_values are scored."""

    def __init__(self, m: int, n_values: int) -> None:
        self.n_values = n_values
        self.spread, self.most, self.coarse = [1.0] * m, [1.0] * m, [False] * m
        self.learned: list[Vector] = []

    def learn(self, z: Vector) -> bool:
        """Learn a sample as it came; whether it is time for a look."""
        self.learned.append(z)
        return len(self.learned) % EVERY == 0

    def look(self) -> bool:
        """Follow the recent samples where they are far from what they were; whether some spread has changed."""
        kept = self.learned[STRIDE - 1 :: STRIDE][-KEPT:]
        changed = False
        for j in range(len(self.learned[0])):
            known = [float(z[j]) for z in kept if not isnan(z[j])]
            now = min(quartile_spread(known), self.most[j]) if len(known) >= ENOUGH_RECENT else 0.0
            if now > 0 and (self.coarse[j] or now >= FAR * self.spread[j] or FAR * now <= self.spread[j]):
                self.spread[j], self.coarse[j], changed = now, False, True
        return changed

    def now(self) -> tuple[list[float], list[float], list[bool]]:
        """The spreads, what they were at first, and which are coarse."""
        return self.spread, self.most, self.coarse

    def tell(self, j: int, spread: float, coarse: bool) -> None:
        """The spread of values that differ from most others."""
        self.spread[j] = self.most[j] = spread
        self.coarse[j] = coarse and self.n_values > 1

    def floor(self, least: float) -> Vector:
        """The least variances: a share of the squared spread, or all of it."""
        return np.array([(1.0 if c else least) * s**2 for s, c in zip(self.spread, self.coarse, strict=True)])


def quartile_spread(values: list[float]) -> float:
    """The quartile range over 1.349."""
    ordered, n = sorted(values), len(values)
    return (ordered[3 * n // 4] - ordered[n // 4]) / 1.349 if n else 0.0
