"""A factor: an exponential family over one feature, independent of the others inside of a node.

A node's samples enter by the mean of T(x) alone. The conjugate prior is a pseudo-samples of mean t0; c = n + a samples
of mean t = (n mean + a t0) / c are then the posterior, whose mean of E T is t (Diaconis and Ylvisaker, 1979). Z(c, t),
the integral of exp(c (<eta, t> - A(eta))) over eta, gives all the rest: the evidence is Z(c, t) / Z(a, t0).
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final

import numpy as np

from core.arrays import FloatArray
from core.families.base import ExponentialFamily

MOST_COUNT: Final = 30.0
"""Predictives of counts and times speak for at most so many samples, as a Student t has a cap on its freedom: a node
that has seen much still keeps a tail."""
LEAST: Final = 1e-12
"""No probability, rate or mean time is smaller, in the units of its kind: a child's prior is its parent's posterior,
and rounding may leave a share of -1e-17 where the last sample was taken out."""

LARGEST: Final = 1e100
"""What enters statistics of times is no larger, in the units of its kind, as scaled samples are cut there."""


class Predictive(ABC):
    """The posterior predictives of N nodes over one feature, frozen. Samples come as coordinates z (n,) of its kind."""

    @abstractmethod
    def log_density(self, z: FloatArray) -> FloatArray:
        """Log densities (n, N) of the values that the coordinates stand for; of whole numbers, log probabilities."""

    @abstractmethod
    def expected(self) -> FloatArray:
        """Expected log densities (N,): minus the entropies."""

    @abstractmethod
    def center(self) -> FloatArray:
        """Coordinates (N,) to expect."""

    @abstractmethod
    def spread(self) -> FloatArray:
        """Variances (N,) of the coordinate, about."""

    @abstractmethod
    def describe(self, node: int, unit: float) -> dict[str, Any]:
        """The parameters of one node, for values in a unit of this size."""


class Factor(ExponentialFamily):
    """An exponential family over one feature, with conjugate prior.

    columns are what statistics keep of a sample: 1 if the feature is known (so a missing one is not counted), T(x), and
    whatever else limits need. A family whose T are shares that sum to one leaves the first column out.
    """

    kind: ClassVar[str]
    width: ClassVar[int]

    def __init__(self) -> None:
        super().__init__(1)

    @abstractmethod
    def columns(self, z: FloatArray) -> FloatArray:
        """What statistics keep of known coordinates (n,): (n, width)."""

    @abstractmethod
    def start(self) -> FloatArray:
        """The columns (width,) that the root expects."""

    def expecting(self, location: float, spread: float) -> FloatArray:
        """The columns (width,) that the root expects when a warm-up had this median and spread of the coordinate."""
        return self.start()

    @abstractmethod
    def prior_count(self, expected: FloatArray) -> FloatArray:
        """How many pseudo-samples (k,) the columns (k, width) count as that groups expect."""

    def known(self, mean: FloatArray) -> FloatArray:
        """The share (k,) of samples that have this feature, by their mean columns (k, width)."""
        share: FloatArray = mean[:, 0]
        return share

    @abstractmethod
    def log_normalizer(self, count: FloatArray, mean: FloatArray) -> FloatArray:
        """log Z(c, t), (k,), of counts c (k,) and columns (k, width)."""

    @abstractmethod
    def predictive(self, count: FloatArray, mean: FloatArray) -> Predictive:
        """The predictives of posteriors with these counts (N,) and columns (N, width)."""

    @abstractmethod
    def limits(self, count: float, mean: FloatArray, expected: FloatArray, reach: float) -> tuple[float, float]:
        """The coordinates between which the root, with these columns (width,), takes a sample as it is."""

    def posterior(self, count: FloatArray, mean: FloatArray, expected: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Counts c (k,) and columns (k, width) of groups with these counts and mean columns, and what they expect."""
        a = self.prior_count(expected)
        n = np.maximum(count * self.known(mean), 0.0)
        sums = np.maximum(count, 0.0)[:, None] * mean + a[:, None] * expected
        return n + a, sums / (n + a)[:, None]

    def log_evidence(self, count: FloatArray, mean: FloatArray, expected: FloatArray) -> FloatArray:
        """Log marginal likelihoods (k,) of groups, without the sums of log h(x), which no grouping changes."""
        before = self.log_normalizer(self.prior_count(expected), expected)
        return self.log_normalizer(*self.posterior(count, mean, expected)) - before
