"""What an exponential family is here, and what the tree asks of one.

f(x) = exp(<eta, T(x)> - A(eta) + log h(x)), ITAN "single component". A family defines T, A, log h and the moment map;
the density follows, and the map back is the gradient of A. For many nodes at once a family also turns centred
statistics and a prior into frozen densities, which is the form that the tree scores with.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from core.arrays import BoolArray, FloatArray, IntArray
from core.statistics import Statistics


@dataclass(slots=True)
class Prior:
    """Conjugate prior of N nodes: count pseudo-samples of this mean (N, m) and covariance.

    covariance is (N, m, m), or (N, m) for a family that keeps variances only. floor is the least variance of a feature.
    """

    count: float
    mean: FloatArray
    covariance: FloatArray
    floor: float


@dataclass(slots=True)
class Conditional:
    """What n samples with k features missing are to N nodes.

    known (n, N) is the log density of the features that are there. log_density (n, N) is the expected one of the whole
    sample given these, so it compares with that of complete samples; mean (n, N, k) and variance (N, k) are those of
    the missing features given the others.
    """

    known: FloatArray
    log_density: FloatArray
    mean: FloatArray
    variance: FloatArray


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

    @abstractmethod
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means (N, m) and covariances, or the scale matrices of those with tails, (N, m, m)."""

    @abstractmethod
    def root_moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean (m,) and deviations (m,) of node 0."""

    @abstractmethod
    def marginal(self, features: list[int]) -> "NodeDensities":
        """The densities of some of the features alone."""

    @abstractmethod
    def update(self, statistics: Statistics, prior: Prior, nodes: IntArray) -> None:
        """Estimate these nodes anew (MAP: the moment map of samples and pseudo-samples); others stay."""


class Family(ABC):
    """An exponential family over m features."""

    diagonal: ClassVar[bool]

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

    @abstractmethod
    def nodes(self, *, predictive: bool) -> NodeDensities:
        """Frozen densities of no nodes yet: the posterior predictive, or the MAP member of the family."""
