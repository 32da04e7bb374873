"""A product over features: one Gaussian block for gaussian and lognormal features, and a factor for each other one."""

from typing import Any

import numpy as np

from core.arrays import BoolArray, FloatArray, IntArray, grown
from core.families.base import Conditional, ExponentialFamily, Family, NodeDensities, Prior
from core.families.factor import Predictive
from core.families.layout import Layout
from core.families.statistics import Statistics


class Product(Family):
    """T and eta are those of the block and of the factors, side by side; A and log h are sums."""

    def __init__(self, block: type[Family], kinds: tuple[str, ...]) -> None:
        super().__init__(len(kinds))
        self.layout = layout = Layout(kinds)
        self.diagonal, self._block = block.diagonal, block
        b = len(layout.block)
        self._features: list[IntArray] = [layout.block] * (b > 0) + [np.array([feature]) for feature in layout.apart]
        self._families: list[ExponentialFamily] = [block(b)] * (b > 0) + [*layout.factors]

    def sufficient(self, X: FloatArray) -> FloatArray:
        return np.concatenate([family.sufficient(X[:, f]) for f, family in self._parts()], 1)

    def log_partition(self, eta: FloatArray) -> float:
        return sum(family.log_partition(part) for family, part in self._split(eta))

    def log_base(self, X: FloatArray) -> FloatArray:
        base: FloatArray = np.sum([family.log_base(X[:, f]) for f, family in self._parts()], 0)
        return base

    def natural(self, mean_statistic: FloatArray) -> FloatArray:
        return np.concatenate([family.natural(part) for family, part in self._split(mean_statistic)])

    def mean_statistic(self, eta: FloatArray) -> FloatArray:
        return np.concatenate([family.mean_statistic(part) for family, part in self._split(eta)])

    def nodes(self, *, predictive: bool) -> "ProductNodes":
        b = len(self.layout.block)
        return ProductNodes(self.layout, self._block(b).nodes(predictive=predictive) if b else None)

    def _parts(self) -> list[tuple[IntArray, ExponentialFamily]]:
        return list(zip(self._features, self._families, strict=True))

    def _split(self, values: FloatArray) -> list[tuple[ExponentialFamily, FloatArray]]:
        """Families with their part of the values (d,), by the length of their T at a point in every support."""
        lengths = [family.sufficient(np.ones((1, len(f)))).shape[1] for f, family in self._parts()]
        return list(zip(self._families, np.split(values, np.cumsum(lengths)[:-1]), strict=True))


class ProductNodes(NodeDensities):
    """N products. Samples are coordinates; densities are those of the values, in the units of their kinds."""

    def __init__(self, layout: Layout, block: NodeDensities | None) -> None:
        self._layout, self._inner = layout, block
        self._count = [np.zeros(0) for _ in layout.factors]
        self._mean = [np.zeros((0, factor.width)) for factor in layout.factors]
        self._expected = [factor.start() for factor in layout.factors]
        self.predictives: list[Predictive] = []

    def update(self, statistics: Statistics, prior: Prior, nodes: IntArray) -> None:
        layout, b = self._layout, len(self._layout.block)
        if self._inner is not None:
            self._inner.update(statistics, prior, nodes)
            self.freedom = self._inner.freedom
        size = max(len(self._count[0]), int(nodes.max(initial=-1)) + 1)
        count, mean, expected = statistics.count[nodes], statistics.mean[nodes, b:], prior.mean[nodes, b:]
        self.predictives = []
        for i, (factor, span) in enumerate(zip(layout.factors, layout.spans, strict=True)):
            self._count[i], self._mean[i] = grown(self._count[i], size), grown(self._mean[i], size)
            self._count[i][nodes], self._mean[i][nodes] = factor.posterior(count, mean[:, span], expected[:, span])
            self._expected[i] = prior.mean[0, b:][span].copy()
            self.predictives.append(factor.predictive(self._count[i], self._mean[i]))

    def log_density(self, X: FloatArray) -> FloatArray:
        return self._block_log_density(X) + self._sum_of_factors(X, np.zeros(X.shape[1], bool))

    def conditional(self, X: FloatArray, missing: BoolArray) -> Conditional:
        given = self._block_given(X, missing)
        factors = self._sum_of_factors(X, missing)
        unknown = sum((one.expected() for feature, one in self._factors() if missing[feature]), np.zeros(self._n_nodes))
        shape = (len(X), self._n_nodes, int(missing.sum()))
        mean, variance = np.zeros(shape), np.ones(shape)  # a variance above 0 says that a feature was imputed
        place = np.cumsum(missing) - 1
        of_block = place[self._layout.block[missing[self._layout.block]]]
        mean[:, :, of_block], variance[:, :, of_block] = given.mean, given.variance
        for feature, one in self._factors():
            if missing[feature]:
                mean[:, :, place[feature]] = one.center()
        return Conditional(given.known + factors, given.log_density + factors + unknown, mean, variance)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Those of the coordinates: exact for the block, approximate for the factors."""
        block, m, n = self._layout.block, self._layout.n_features, self._n_nodes
        mean, covariance = np.zeros((n, m)), np.zeros((n, m, m))
        if self._inner is not None:
            mean[:, block], covariance[np.ix_(np.arange(n), block, block)] = self._inner.moments()
        for feature, one in self._factors():
            mean[:, feature], covariance[:, feature, feature] = one.center(), one.spread()
        return mean, covariance

    def drawn_in(self, X: FloatArray, log_density: FloatArray, reach: float) -> FloatArray:
        """Draw the block in as if it were alone, and each other feature to the limits of its kind."""
        drawn, block = X.copy(), self._layout.block
        if self._inner is not None:
            drawn[:, block] = self._inner.drawn_in(X[:, block], self._inner.log_density(X[:, block]), reach)
        for i, (feature, factor) in enumerate(zip(self._layout.apart, self._layout.factors, strict=True)):
            limits = factor.limits(float(self._count[i][0]), self._mean[i][0], self._expected[i], reach)
            drawn[:, feature] = np.clip(X[:, feature], *limits)
        return X if np.array_equal(drawn, X) else drawn

    def marginal(self, features: list[int]) -> "ProductNodes":
        layout = self._layout
        of_block = [layout.block.tolist().index(f) for f in features if f in layout.block]
        inner = self._inner.marginal(of_block) if self._inner is not None and of_block else None
        part = ProductNodes(layout.part(features), inner)
        part.freedom = self.freedom
        part.predictives = [self.predictives[layout.apart.tolist().index(f)] for f in features if f in layout.apart]
        return part

    def describe(self, node: int, units: FloatArray) -> list[dict[str, Any]]:
        """Each factor's kind and parameters in one node, given the units (m,) of the coordinates' values."""
        return [
            {"feature": feature, "kind": factor.kind} | one.describe(node, float(units[feature]))
            for factor, (feature, one) in zip(self._layout.factors, self._factors(), strict=True)
        ]

    def predictive(self, feature: int) -> Predictive:
        """The nodes' predictives of a feature that has a factor."""
        return dict(self._factors())[feature]

    @property
    def _n_nodes(self) -> int:
        return len(self.predictives[0].center() if self._inner is None else self._inner.moments()[0])

    def _factors(self) -> list[tuple[int, Predictive]]:
        return list(zip(self._layout.apart.tolist(), self.predictives, strict=True))

    def _sum_of_factors(self, X: FloatArray, missing: BoolArray) -> FloatArray:
        """Log densities (n, N) of the factors whose features are there."""
        total = np.zeros((len(X), self._n_nodes))
        for feature, one in self._factors():
            if not missing[feature]:
                total += one.log_density(X[:, feature].copy())  # whole columns: numpy rounds by the stride
        return total

    def _block_log_density(self, X: FloatArray) -> FloatArray:
        if self._inner is None:
            return np.zeros((len(X), self._n_nodes))
        return self._inner.log_density(X[:, self._layout.block])

    def _block_given(self, X: FloatArray, missing: BoolArray) -> Conditional:
        block = self._layout.block
        if self._inner is not None and missing[block].any():
            return self._inner.conditional(X[:, block], missing[block])
        log_density, nothing = self._block_log_density(X), np.zeros((len(X), self._n_nodes, 0))
        return Conditional(log_density, log_density, nothing, nothing)
