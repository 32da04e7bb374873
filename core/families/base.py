"""What an exponential family is here, and what the tree asks of one.

f(x) = exp(<eta, T(x)> - A(eta) + log h(x)), ITAN "single component". A family defines T, A, log h and the moment map;
the density follows, and the map back is the gradient of A. For many nodes at once a family also turns centred
statistics and a prior into frozen densities, which is the form that the tree scores with.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.arrays import BoolArray, FloatArray, IntArray, grown
from core.families.statistics import Statistics


@dataclass(slots=True)
class Prior:
    """Conjugate prior of N nodes.

    mean (N, w), what is expected of the columns, counts for the b of the Gaussian block as mean_count (N,)
    pseudo-samples, and for the others as many as their family says; scale counts as strength (N,): it is (N, b, b), or
    (N, b) for a family that keeps variances only. floor is the block's least variance, whatever the samples say.
    """

    mean_count: FloatArray
    mean: FloatArray
    strength: FloatArray
    scale: FloatArray
    floor: float

    ARRAYS: ClassVar = ("mean_count", "mean", "strength", "scale")

    def grow(self, size: int) -> None:
        """Make room for more nodes."""
        for name in self.ARRAYS:
            setattr(self, name, grown(getattr(self, name), size))


@dataclass(slots=True)
class Conditional:
    """What n samples with k features missing are to N nodes.

    known (n, N) is the log density of the features that are there. log_density (n, N) is the expected one of the whole
    sample given these, so it compares with that of complete samples; mean and variance (n, N, k) are those of the
    missing features given the others.
    """

    known: FloatArray
    log_density: FloatArray
    mean: FloatArray
    variance: FloatArray


@dataclass(slots=True)
class LeftOut:
    """What n samples are to N nodes when one of their m features is not known, each in its turn.

    log_density (n, m, N) is that of the other features, and mean (n, m, N) that of the feature given the others.
    """

    log_density: FloatArray
    mean: FloatArray


class NodeDensities(ABC):
    """The densities of N nodes, frozen until a round ends.

    freedom (N,) are the degrees of freedom of those with tails (Student t), None for those without (Gaussians).
    """

    freedom: FloatArray | None = None

    @abstractmethod
    def log_density(self, X: FloatArray) -> FloatArray:
        """Log densities (n, N) of complete samples (n, m)."""

    @abstractmethod
    def conditional(self, X: FloatArray, missing: BoolArray) -> Conditional:
        """Samples (n, m) whose features under the mask missing (m,) are not known."""

    def left_out(self, X: FloatArray) -> LeftOut:
        """Complete samples (n, m), with each feature in turn integrated out."""
        alone = [self.conditional(X, missing) for missing in np.eye(X.shape[1], dtype=bool)]
        return LeftOut(np.stack([one.known for one in alone], 1), np.stack([one.mean[:, :, 0] for one in alone], 1))

    @abstractmethod
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means (N, m) and covariances, or the scale matrices of those with tails, (N, m, m)."""

    @abstractmethod
    def drawn_in(self, X: FloatArray, log_density: FloatArray, reach: float) -> FloatArray:
        """Samples (n, m) of these log densities (n, N), those beyond reach deviations of the root drawn back to there.

        X itself if there are none.
        """

    @abstractmethod
    def marginal(self, features: list[int]) -> "NodeDensities":
        """The densities of some of the features alone."""

    @abstractmethod
    def update(self, statistics: Statistics, prior: Prior, nodes: IntArray) -> None:
        """Estimate these nodes anew (MAP: the moment map of samples and pseudo-samples); others stay."""


class ExponentialFamily(ABC):
    """An exponential family over m features, by its definition."""

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features

    @abstractmethod
    def sufficient(self, X: FloatArray) -> FloatArray:
        """T(x), shape (n, d), of samples (n, m)."""

    @abstractmethod
    def log_partition(self, eta: FloatArray) -> float:
        """A(eta)."""

    @abstractmethod
    def log_base(self, X: FloatArray) -> FloatArray:
        """log h(x), shape (n,)."""

    @abstractmethod
    def natural(self, mean_statistic: FloatArray) -> FloatArray:
        """The moment map, ITAN eq. moment: the eta whose model mean of T is mean_statistic."""

    @abstractmethod
    def mean_statistic(self, eta: FloatArray) -> FloatArray:
        """The model mean of T: the gradient of A, and natural's inverse."""

    def log_density(self, eta: FloatArray, X: FloatArray) -> FloatArray:
        """<eta, T(x)> - A(eta) + log h(x), shape (n,)."""
        density: FloatArray = self.sufficient(X) @ eta - self.log_partition(eta) + self.log_base(X)
        return density


class Family(ExponentialFamily):
    """One that whole nodes have: over all features, or over the block of a product."""

    diagonal: bool

    @abstractmethod
    def nodes(self, *, predictive: bool) -> NodeDensities:
        """Frozen densities of no nodes yet: the posterior predictive, or the MAP member of the family."""
