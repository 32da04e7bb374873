"""A factor: an exponential family over one feature, independent of the other features within a node.

The conjugate prior is a pseudo-samples whose T has the mean t0. With n samples the posterior is c = n + a samples of
mean t = (n mean + a t0) / c, under which E T is t on average (Diaconis and Ylvisaker, 1979). The integral Z(c, t) of
eq. (17) gives predictive and evidence.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final

import numpy as np

from core.arrays import FloatArray, IntArray
from core.families.base import ExponentialFamily

MOST_COUNT: Final = 30.0
"""Predictives of counts and times speak for at most so many samples, so that even a node that has seen much keeps a
tail: as MOST_FREEDOM of Student t. Chosen by hand."""
LEAST: Final = 1e-12
"""The least probability, rate or mean time, in the units of its kind: a child's prior is its parent's posterior, and
rounding may leave a share of -1e-17 where the last sample was taken out."""
LARGEST: Final = 1e100
"""The largest time that enters statistics, in the units of its kind; scaled samples are cut there too."""


class Predictive(ABC):
    """The posterior predictives of N nodes over one feature, frozen. Samples are coordinates z (n,) of its kind."""

    @abstractmethod
    def log_density(self, z: FloatArray) -> FloatArray:
        """Log densities (n, N), in nats, of the values at these coordinates; log probabilities for whole numbers."""

    @abstractmethod
    def expected(self) -> FloatArray:
        """Expected log densities (N,), in nats: minus the entropies."""

    @abstractmethod
    def center(self) -> FloatArray:
        """The expected coordinates (N,)."""

    @abstractmethod
    def spread(self) -> FloatArray:
        """The variances (N,) of the coordinate, approximately."""

    @abstractmethod
    def cdf(self, x: FloatArray, nodes: IntArray) -> FloatArray:
        """The chances (p, k), by each of these nodes (p, k), of values up to x (p,), in the units of the kind."""

    @abstractmethod
    def bounds(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Values (N,), in the units of the kind, between which the quantiles of this level, 0 to 1, lie."""

    @abstractmethod
    def describe(self, node: int, unit: float) -> dict[str, Any]:
        """The parameters of one node, in the user's units, of which one unit of the kind has this size."""


class Factor(ExponentialFamily):
    """An exponential family over one feature, with a conjugate prior.

    Statistics keep the mean of its columns over the samples: 1 if the feature is known, so that a missing one does not
    count, then T(x), then what limits need. A family whose T are shares that sum to one leaves the first column out.
    """

    kind: ClassVar[str]
    width: ClassVar[int]

    def __init__(self) -> None:
        super().__init__(1)

    @abstractmethod
    def columns(self, z: FloatArray) -> FloatArray:
        """The columns (n, width) of known coordinates (n,)."""

    @abstractmethod
    def start(self) -> FloatArray:
        """The columns (width,) that the root expects."""

    def expecting(self, location: float, spread: float) -> FloatArray:
        """The columns (width,) that the root expects after a warm-up with this median and spread of the coordinate."""
        return self.start()

    @abstractmethod
    def prior_count(self, expected: FloatArray) -> FloatArray:
        """How many pseudo-samples (k,) the expected columns (k, width) count as."""

    def known(self, mean: FloatArray) -> FloatArray:
        """The share (k,) of samples that have this feature, by their mean columns (k, width)."""
        share: FloatArray = mean[:, 0]
        return share

    @abstractmethod
    def log_normalizer(self, count: FloatArray, mean: FloatArray) -> FloatArray:
        """log Z(c, t) of eq. (17), (k,), for counts c (k,) and columns (k, width)."""

    @abstractmethod
    def predictive(self, count: FloatArray, mean: FloatArray) -> Predictive:
        """The predictives of posteriors with these counts (N,) and columns (N, width)."""

    @abstractmethod
    def limits(self, count: float, mean: FloatArray, expected: FloatArray, reach: float) -> tuple[float, float]:
        """The lowest and highest coordinate that is learned as it is, by the root's count and columns (width,)."""

    def posterior(self, count: FloatArray, mean: FloatArray, expected: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The posterior's counts c (k,) and columns (k, width), from those of k groups and what the groups expect."""
        a = self.prior_count(expected)
        n = np.maximum(count * self.known(mean), 0.0)
        sums = np.maximum(count, 0.0)[:, None] * mean + a[:, None] * expected
        return n + a, sums / (n + a)[:, None]

    def log_evidence(self, count: FloatArray, mean: FloatArray, expected: FloatArray) -> FloatArray:
        """Log marginal likelihoods (k,) of groups, eq. (17), without sums of log h(x), which no grouping changes."""
        before = self.log_normalizer(self.prior_count(expected), expected)
        return self.log_normalizer(*self.posterior(count, mean, expected)) - before
