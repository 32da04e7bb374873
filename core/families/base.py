"""What an exponential family is, eq. (3), and what the tree asks of the densities of its nodes.

A family defines T, A, log h and the moment map; its density follows, and the gradient of A is the map back. For many
nodes at once it also turns centred statistics and a prior into frozen densities, which score samples.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.arrays import BoolArray, FloatArray, IntArray, grown
from core.families.statistics import Statistics


@dataclass(slots=True)
class Prior:
    """Conjugate priors of N nodes.

    mean (N, w) is what is expected of the w columns. For the b columns of the Gaussian block it counts as mean_count
    (N,) pseudo-samples, for the others as many as their family says. scale, (N, b, b) or (N, b) when diagonal, counts
    as strength (N,) pseudo-samples. floor (b,) are the least variances of the block.
    """

    mean_count: FloatArray
    mean: FloatArray
    strength: FloatArray
    scale: FloatArray
    floor: FloatArray

    ARRAYS: ClassVar = ("mean_count", "mean", "strength", "scale")

    def grow(self, size: int) -> None:
        """Make room for more nodes."""
        for name in self.ARRAYS:
            setattr(self, name, grown(getattr(self, name), size))


@dataclass(slots=True)
class Conditional:
    """What N nodes say of n samples with k features missing.

    known (n, N) is the log density of the features that are there. log_density (n, N) is that expected of the whole
    sample, eq. (22), which compares with that of complete samples. mean and variance (n, N, k) are those of the missing
    features given the others.
    """

    known: FloatArray
    log_density: FloatArray
    mean: FloatArray
    variance: FloatArray


@dataclass(slots=True)
class LeftOut:
    """What N nodes say of n samples when one of their m features is left out, each in turn.

    log_density (n, m, N) is that of the other features, mean (n, m, N) that of the feature given the others.
    """

    log_density: FloatArray
    mean: FloatArray


class NodeDensities(ABC):
    """The densities of N nodes, frozen between updates. Samples are scaled; log densities are in nats.

    freedom (N,) are the degrees of freedom of Student t; None for densities without.
    """

    freedom: FloatArray | None = None

    @abstractmethod
    def log_density(self, X: FloatArray) -> FloatArray:
        """Log densities (n, N) of complete samples (n, m)."""

    @abstractmethod
    def conditional(self, X: FloatArray, missing: BoolArray) -> Conditional:
        """What the nodes say of samples (n, m) whose features in the mask missing (m,) are not known."""

    def left_out(self, X: FloatArray) -> LeftOut:
        """What the nodes say of complete samples (n, m) with each feature in turn integrated out."""
        alone = [self.conditional(X, missing) for missing in np.eye(X.shape[1], dtype=bool)]
        return LeftOut(np.stack([one.known for one in alone], 1), np.stack([one.mean[:, :, 0] for one in alone], 1))

    @abstractmethod
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means (N, m), and covariances, or the scale matrices of Student t, (N, m, m)."""

    @abstractmethod
    def drawn_in(self, X: FloatArray, log_density: FloatArray, reach: float) -> FloatArray:
        """Samples (n, m) of these log densities (n, N), drawn in to reach deviations of the root, eq. (18).

        X itself if all lie within.
        """

    @abstractmethod
    def marginal(self, features: list[int]) -> "NodeDensities":
        """The densities of some of the features alone."""

    @abstractmethod
    def update(self, statistics: Statistics, prior: Prior, nodes: IntArray) -> None:
        """Estimate these nodes (k,) anew from their statistics and priors; the others stay."""


class ExponentialFamily(ABC):
    """An exponential family over m features, by its definition, eq. (3)."""

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
        """The moment map, eq. (4): the eta (d,) under which the mean of T is mean_statistic (d,)."""

    @abstractmethod
    def mean_statistic(self, eta: FloatArray) -> FloatArray:
        """The mean of T (d,) under eta (d,): the gradient of A, and natural's inverse."""

    def log_density(self, eta: FloatArray, X: FloatArray) -> FloatArray:
        """The log density (n,) of samples (n, m), eq. (3)."""
        density: FloatArray = self.sufficient(X) @ eta - self.log_partition(eta) + self.log_base(X)
        return density


class Family(ExponentialFamily):
    """A family of whole nodes: over all features, or over the block of a product."""

    diagonal: bool

    @abstractmethod
    def nodes(self, *, predictive: bool) -> NodeDensities:
        """Densities for nodes, none yet: posterior predictives, eq. (6), or MAP members of the family, eq. (5)."""
