"""ITAN's density in plain loops (Alg. 1 and 2): a tree of lists of samples, and the mixture over all of its nodes.

The specification of the paper profile, and of what the default engine shares with it. Nothing is updated: whatever a
node knows is computed anew, by textbook formulas, from the list of the samples that it counted.
"""

from copy import copy
from dataclasses import dataclass, field
from math import ceil, exp, inf, log, nan, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from core.config import DetectorConfig
from core.forgetting import HALVINGS
from core.mixture.exponentiated_gradient import LEAST_MEAN_LOSS, RATIO_CAP
from core.mixture.learning_rates import SOFT_BAYES_RATE

LEFT, RIGHT = 0, 1
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(eq=False)
class Sample:
    """A sample as it is learned: its value, the variance of what was imputed, and what the model said of it.

    came is the sample as it came, ordinal its number among the learned, moment its time on the clock of forgetting, and
    log_p the log density of its values given its context. A retracted sample stays in the lists but is void, so that it
    can be restored.
    """

    value: Vector
    spread: Vector
    log_densities: list[float]
    time: float = nan
    ordinal: int = 0
    moment: float = nan
    sides: dict[int, int] = field(default_factory=dict)
    void: bool = False
    came: Vector | None = None
    log_p: float = nan


class Node:
    """One subspace, with the samples it counted; path is the (normal, offset, side) that lead to it."""

    def __init__(self, parent: "Node | None", path: list[tuple[Vector, float, int]], m: int, born: float) -> None:
        self.parent, self.path, self.born = parent, path, born
        self.times_split = 0
        self.counted: list[Sample] = []
        self.prior_mean, self.mean_count = np.zeros(m), 0.0
        self.scale, self.strength = np.eye(m), 0.0

    @property
    def level(self) -> int:
        return len(self.path)

    def holds(self, x: Vector) -> bool:
        return all((normal @ x >= offset) == (side == LEFT) for normal, offset, side in self.path)


def present(samples: list[Sample]) -> list[Sample]:
    return [s for s in samples if not s.void]


class NaiveDensity:
    """The mixture over samples z (m,) in the scaled space; NaN is a missing feature."""

    floor: float | Vector = 0.0
    followed = False

    def __init__(self, config: DetectorConfig) -> None:
        self.config, self.m = config, config.n_columns
        self.context = np.isin(np.arange(self.m), config.context)
        self.half_life = config.half_life_seconds or config.half_life_samples
        self.now = -inf
        root = Node(None, [], self.m, self.now)
        root.mean_count = root.strength = config.prior_count
        self.nodes = [root]
        self.alpha = [1.0]
        self.samples: list[Sample] = []
        self.round: list[Sample] = []
        self.n_learned = 0
        self.n_weighed, self.summed_loss, self.largest_ratio = 0, 0.0, 1.0
        self.freeze()

    # what samples count

    def weight(self, sample: Sample) -> float:
        """Half as much for every half-life that has gone since."""
        return self.weight_of(sample.moment)

    def weight_of(self, moment: float) -> float:
        if self.half_life is None or self.now == -inf:
            return 1.0
        return 0.5 ** (max(self.now - moment, 0.0) / self.half_life)

    def total(self, samples: list[Sample]) -> float:
        return sum(self.weight(s) for s in present(samples))

    def mean_of(self, samples: list[Sample]) -> Vector:
        """The weighted mean; nought of nothing."""
        samples = present(samples)
        if not samples:
            return np.zeros(self.m)
        return np.average([s.value for s in samples], axis=0, weights=[self.weight(s) for s in samples])

    def scatter_of(self, samples: list[Sample]) -> Matrix:
        """Sum of weight times ((x - mean) (x - mean)^T + the variance of what was imputed)."""
        samples, mean = present(samples), self.mean_of(samples)
        if not samples:
            return np.zeros((self.m, self.m))
        off = np.array([s.value for s in samples]) - mean
        weights = np.array([self.weight(s) for s in samples])
        spread = weights @ np.array([s.spread for s in samples])
        return self.shaped((weights[:, None] * off).T @ off + np.diag(spread))

    def shaped(self, matrix: Matrix) -> Matrix:
        """The matrix, or only its diagonal if the family is diagonal."""
        return np.diag(np.diag(matrix)) if self.config.family == "gaussian_diagonal" else matrix

    def about_prior(self, node: Node) -> Matrix:
        """The scatter, and what the prior mean adds by being elsewhere."""
        n, off = self.total(node.counted), self.mean_of(node.counted) - node.prior_mean
        weight = n * node.mean_count / (n + node.mean_count)
        return self.scatter_of(node.counted) + self.shaped(weight * np.outer(off, off))

    def posterior(self, node: Node) -> tuple[Vector, Matrix]:
        """MAP mean and covariance: the samples and the prior's pseudo-samples together."""
        n, k0, a = self.total(node.counted), node.mean_count, node.strength
        mean = (n * self.mean_of(node.counted) + k0 * node.prior_mean) / (n + k0)
        covariance = (self.about_prior(node) + a * node.scale) / (n + a)
        return mean, covariance + self.floor * np.eye(self.m)

    # what the frozen model says

    def freeze(self) -> None:
        """What stays the same until the round ends."""
        for node in self.nodes:
            node.mean, node.covariance = self.posterior(node)
            self.widen(node)
            node.precision, node.log_determinant = np.linalg.inv(node.covariance), np.linalg.slogdet(node.covariance)[1]
            node.centroids = self.centroid(node, LEFT), self.centroid(node, RIGHT)

    def widen(self, node: Node) -> None:
        """From the MAP covariance to the matrix of the density: the same."""

    def centroid(self, node: Node, side: int) -> Vector:
        """The mean of the samples that went there; one at the origin, as old as the node, counts too."""
        there = [s for s in present(node.counted) if s.sides.get(id(node)) == side]
        total = self.weight_of(node.born) + self.total(there)
        return sum((self.weight(s) * s.value for s in there), np.zeros(self.m)) / total

    def log_density(self, log_densities: list[float]) -> float:
        """log sum_i alpha_i f_i of eq. (10)."""
        top = max(log_densities)
        return top + log(sum(a * exp(f - top) for a, f in zip(self.alpha, log_densities, strict=True)))

    def weights_that_score(self) -> list[float]:
        return self.alpha

    def log_score(self, log_densities: list[float]) -> float:
        """The same by the weights that score."""
        top, weights = max(log_densities), self.weights_that_score()
        return top + log(sum(a * exp(f - top) for a, f in zip(weights, log_densities, strict=True)))

    def node_log_density(self, node: Node, z: Vector) -> float:
        delta = z - node.mean
        return self.kernel(node, delta @ node.precision @ delta, node.log_determinant, len(delta))

    def kernel(self, node: Node, squared: float, log_determinant: float, m: int) -> float:
        """log of a Gaussian over m features."""
        return -0.5 * (m * log(2 * pi) + log_determinant + squared)

    def examine(self, z: Vector, time: float = nan) -> Sample:
        """Score a sample by the frozen model, and see as what it will be learned."""
        missing = np.isnan(z)
        value, spread = z.copy(), np.zeros(self.m)
        if missing.any():
            log_densities, value[missing], spread[missing] = self.impute(z, missing)
        else:
            log_densities = [self.node_log_density(node, z) for node in self.nodes]
        sample = Sample(self.drawn_in(value), spread, log_densities, time, came=z)
        sample.log_p = self.log_given(z, log_densities)
        for node in self.nodes:
            sample.sides[id(node)] = self.nearer_side(node, sample.value)
        return sample

    def log_given(self, z: Vector, log_densities: list[float]) -> float:
        """log p(values | context), eq. (37): of a missing context nothing is expected in either density."""
        if not self.context.any():
            return self.log_score(log_densities)
        gone = self.context & np.isnan(z)
        known = self.context & ~gone
        whole = self.log_score([self.of_part(node, z, ~gone) for node in self.nodes])
        return whole - (self.log_score([self.of_part(node, z, known) for node in self.nodes]) if known.any() else 0.0)

    def of_part(self, node: Node, z: Vector, kept: NDArray[np.bool_]) -> float:
        """The log density of these features alone; of those that are missing what is expected of them."""
        part, missing = self.part(node, kept), np.isnan(z[kept])
        if missing.any():
            return self.conditional(part, z[kept], missing)[0]
        return self.node_log_density(part, z[kept])

    def part(self, node: Node, kept: NDArray[np.bool_]) -> Node:
        """The node over these features alone."""
        part = copy(node)
        part.mean, part.covariance = node.mean[kept], node.covariance[np.ix_(kept, kept)]
        part.precision, part.log_determinant = np.linalg.inv(part.covariance), np.linalg.slogdet(part.covariance)[1]
        return part

    def drawn_in(self, x: Vector) -> Vector:
        return x

    def nearer_side(self, node: Node, x: Vector) -> int:
        """The side of the nearer centroid; ties go left."""
        left, right = (float((x - c) @ (x - c)) for c in node.centroids)
        return LEFT if left <= right else RIGHT

    def impute(self, z: Vector, missing: NDArray[np.bool_]) -> tuple[list[float], Vector, Vector]:
        """Expected log density of each node, and mean and variance under the mixture of what is missing."""
        given = [self.conditional(node, z, missing) for node in self.nodes]
        log_densities = [expected for expected, _, _, _ in given]
        evidence = self.evidence_for_imputing(given)
        log_p = self.log_density(evidence)
        shares = [a * exp(f - log_p) for a, f in zip(self.alpha, evidence, strict=True)]
        mean = sum(share * m for share, (_, _, m, _) in zip(shares, given, strict=True))
        variance = sum(share * (v + (m - mean) ** 2) for share, (_, _, m, v) in zip(shares, given, strict=True))
        return log_densities, mean, variance

    def evidence_for_imputing(self, given: list[tuple[float, float, Vector, Vector]]) -> list[float]:
        """By what each node's share in the imputed value goes: the density of what is known."""
        return [known for _, known, _, _ in given]

    def conditional(self, node: Node, z: Vector, missing: NDArray[np.bool_]) -> tuple[float, float, Vector, Vector]:
        """A node given some features: expected log density, that of what is known, and mean and variance of the
        missing features."""
        known, k = ~missing, int(missing.sum())
        s_known, s_cross = node.covariance[np.ix_(known, known)], node.covariance[np.ix_(missing, known)]
        delta = z[known] - node.mean[known]
        mean = node.mean[missing] + s_cross @ np.linalg.solve(s_known, delta)
        covariance = node.covariance[np.ix_(missing, missing)] - s_cross @ np.linalg.solve(s_known, s_cross.T)
        squared = delta @ np.linalg.solve(s_known, delta)
        log_known = self.kernel(node, squared, np.linalg.slogdet(s_known)[1], len(z) - k)
        variance = np.diag(covariance) * self.stretch(node, squared, len(z) - k)
        return self.expected(node, squared, k), log_known, mean, variance

    def stretch(self, node: Node, squared: float, known: int) -> float:
        """The variance of missing features over their conditional scale."""
        return 1.0

    def expected(self, node: Node, squared: float, k: int) -> float:
        """The expected log density of the whole, the k missing features being drawn given the others."""
        return self.kernel(node, squared + k, node.log_determinant, len(node.mean))

    # learning, by rounds

    def learn(self, sample: Sample) -> None:
        """Take a sample into the round, and learn the round once it is as long as it may be."""
        self.round.append(sample)
        if len(self.round) >= min(max(int(self.memory() * self.config.round_growth), 1), self.config.max_round):
            self.end_round()

    def memory(self) -> float:
        """How many samples the statistics remember for something: HALVINGS half-lives."""
        if self.config.half_life_samples is None:
            return self.n_learned
        return min(self.n_learned, HALVINGS * self.config.half_life_samples)

    def end_round(self) -> None:
        """Weights first, by the densities that the samples had; then the lists; then the splits that are due."""
        if not self.round:
            return
        samples, self.round = self.round, []
        self.move_weights(samples)
        before = self.n_learned
        for sample in samples:
            self.n_learned += 1
            sample.ordinal = self.n_learned
            sample.moment = sample.time if self.config.half_life_seconds is not None else float(sample.ordinal)
        self.tick(max(s.moment for s in samples))
        for sample in samples:
            self.samples.append(sample)
            for node in self.nodes:
                if node.holds(sample.value):
                    node.counted.append(sample)
        self.grow(samples, before)
        self.freeze()

    def tick(self, moment: float) -> None:
        """The clock goes on, never back; it starts with the first round."""
        if self.now == -inf:
            self.nodes[0].born = moment
        self.now = max(self.now, moment)

    def grow(self, samples: list[Sample], before: int) -> None:
        for t in range(before + 1, self.n_learned + 1):
            if self.is_split_due(t):
                self.freeze()
                self.split_once()

    def retract(self, sample: Sample) -> None:
        self.set_void(sample, True)

    def restore(self, sample: Sample) -> None:
        self.set_void(sample, False)

    def set_void(self, sample: Sample, void: bool) -> None:
        """The sample leaves, or joins again, every list that it is in; tree, weights and priors stay."""
        self.end_round()
        sample.void = void
        self.freeze()

    # weights

    def move_weights(self, samples: list[Sample]) -> None:
        """Exponentiated gradient or soft-Bayes; no weight is ever quite zero."""
        log_p = [self.log_density(s.log_densities) for s in samples]
        ratios = [[exp(min(f - p, 690.0)) for f in s.log_densities] for s, p in zip(samples, log_p, strict=True)]
        factors = self.eg_factors(ratios, log_p) if self.config.mixture == "eg" else self.soft_bayes_factors(ratios)
        alpha = [max(a * factor, 1e-300) for a, factor in zip(self.alpha, factors, strict=True)]
        self.alpha = [a / sum(alpha) for a in alpha]

    def eg_factors(self, ratios: list[list[float]], log_p: list[float]) -> list[float]:
        """exp(theta f_i / p), summed over the round, of eq. (11), with Theorem 1's theta from running estimates."""
        clipped = [[min(r, RATIO_CAP) for r in row] for row in ratios]
        self.n_weighed += len(ratios)
        self.summed_loss += -sum(log_p)
        self.largest_ratio = max(self.largest_ratio, *(max(row) for row in clipped))
        theta = self.theta(len(self.alpha), self.largest_ratio, self.summed_loss / self.n_weighed, self.n_weighed)
        steps = [theta * sum(row[i] for row in clipped) for i in range(len(self.alpha))]
        return [exp(step - max(steps)) for step in steps]

    def theta(self, n: int, r: float, a: float, t: int) -> float:
        """2 sqrt(ln N) / (R sqrt(2 A T) + R^2 sqrt(ln N)) of eq. (12)."""
        return 2 * sqrt(log(n)) / (r * sqrt(2 * max(a, LEAST_MEAN_LOSS) * t) + r**2 * sqrt(log(n)))

    def soft_bayes_factors(self, ratios: list[list[float]]) -> list[float]:
        """(1 - eta) + eta f_i / p, eta = max(floor, 1 / (t + 1)) for the round's first sample number t.

        A round of k samples takes one step of 1 - (1 - eta)^k along the mean ratio.
        """
        k, t = len(ratios), self.n_weighed + 1
        self.n_weighed += k
        kept = (1 - max(SOFT_BAYES_RATE, 1 / (t + 1))) ** k
        return [kept + (1 - kept) * sum(row[i] for row in ratios) / k for i in range(len(self.alpha))]

    # splits

    def is_split_due(self, t: int) -> bool:
        """Whether t = ceil(beta^k) for some k >= 1."""
        k = 1
        while ceil(self.config.beta**k) < t:
            k += 1
        return ceil(self.config.beta**k) == t

    def split_once(self) -> None:
        """Split the node with the largest ratio of eq. (8), if any has two distinct centroids."""
        best, largest = None, 0.0
        for node in self.nodes:
            if self.separation(node) > largest:
                best, largest = node, self.separation(node)
        if best is not None and len(self.nodes) + 2 <= self.config.max_nodes:
            self.split(best)

    def separation(self, node: Node) -> float:
        gap = node.centroids[LEFT] - node.centroids[RIGHT]
        return sqrt(gap @ gap) / 2 ** (node.level + node.times_split)

    def split(self, node: Node) -> None:
        """Cut at the midpoint of the centroids, normal to their difference; two empty children are appended."""
        normal, offset = self.hyperplane(*node.centroids)
        node.times_split += 1
        for side in (LEFT, RIGHT):
            child = Node(node, [*node.path, (normal, offset, side)], self.m, self.now)
            child.mean_count = child.strength = self.config.prior_count
            self.nodes.append(child)
        self.share_weight(node, [0.5, 0.5])

    def hyperplane(self, left: Vector, right: Vector) -> tuple[Vector, float]:
        gap = left - right
        normal = gap / sqrt(gap @ gap)
        return normal, float(normal @ (left + right) / 2)

    def share_weight(self, node: Node, shares: list[float]) -> None:
        """The node keeps xi of its weight; its children share the rest."""
        at = self.nodes.index(node)
        given = (1 - self.config.xi) * self.alpha[at]
        self.alpha[at] *= self.config.xi
        self.alpha += [given * share for share in shares]
