"""ITAN's density in plain loops (Alg. 1 and 2): a tree of lists of samples, and the mixture over all of its nodes.

This is the specification of core/density.py, core/tree.py, core/mixture.py and core/families. Nothing is updated:
whatever a node knows is computed anew, by textbook formulas, from the list of the samples that it counted.
"""

from dataclasses import dataclass, field
from math import ceil, exp, lgamma, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from core.config import DetectorConfig
from core.density import CHILD_SHAPE, CLIP_SCALES, LEAST_SIDE_COUNT, VARIANCE_FLOOR
from core.families.student_nodes import MOST_FREEDOM, MOST_FREEDOM_PER_FEATURE
from core.mixture import LEAST_MEAN_LOSS, RATIO_CAP, SOFT_BAYES_RATE

LEFT, RIGHT = 0, 1
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(eq=False)
class Sample:
    """A sample as it is learned: its value, the variance of what was imputed, and what the model said of it.

    A retracted sample stays in the lists but is void, so that it can be restored.
    """

    value: Vector
    spread: Vector
    log_densities: list[float]
    sides: dict[int, int] = field(default_factory=dict)
    void: bool = False


class Node:
    """One subspace, with the samples it counted; path is the (normal, offset, side) that lead to it."""

    def __init__(self, parent: "Node | None", path: list[tuple[Vector, float, int]], m: int) -> None:
        self.parent, self.path = parent, path
        self.times_split = 0
        self.inherited: list[Sample] = []
        self.on_side: tuple[list[Sample], list[Sample]] = ([], [])
        self.seeds = np.zeros(m), np.zeros(m)
        self.prior_mean, self.prior_covariance = np.zeros(m), np.eye(m)

    @property
    def level(self) -> int:
        return len(self.path)

    def holds(self, x: Vector) -> bool:
        return all((normal @ x >= offset) == (side == LEFT) for normal, offset, side in self.path)

    def counted(self) -> list[Sample]:
        return present([*self.inherited, *self.on_side[LEFT], *self.on_side[RIGHT]])

    def centroid(self, side: int) -> Vector:
        """The mean of its samples; the seed counts as one."""
        return np.mean([self.seeds[side], *(s.value for s in present(self.on_side[side]))], axis=0)


def present(samples: list[Sample]) -> list[Sample]:
    return [s for s in samples if not s.void]


class NaiveDensity:
    """The mixture over samples z (m,) in the scaled space; NaN is a missing feature."""

    def __init__(self, config: DetectorConfig) -> None:
        self.config, self.m = config, config.n_features
        self.warm = config.profile != "paper"
        self.floor = VARIANCE_FLOOR if self.warm else 0.0
        self.nodes = [Node(None, [], self.m)]
        self.alpha = [1.0]
        self.round: list[Sample] = []
        self.n_learned = 0
        self.n_weighed, self.summed_loss, self.largest_ratio = 0, 0.0, 1.0
        self.freeze(self.nodes)

    # what the frozen model says

    def freeze(self, nodes: list[Node]) -> None:
        """What stays the same until the round ends: moments, precision and centroids."""
        for node in nodes:
            node.mean, node.covariance = self.moments(node)
            if self.warm:
                total = len(node.counted()) + self.config.prior_count
                node.freedom = min(total, MOST_FREEDOM + MOST_FREEDOM_PER_FEATURE * self.m)
                node.covariance = node.covariance * (total + 1) / total
            node.precision, node.log_determinant = np.linalg.inv(node.covariance), np.linalg.slogdet(node.covariance)[1]
            node.centroids = node.centroid(LEFT), node.centroid(RIGHT)

    def moments(self, node: Node) -> tuple[Vector, Matrix]:
        """Mean and covariance of the node's samples and of its prior's pseudo-samples, taken together."""
        mean, covariance = weighted_moments(
            node.counted(), self.config.prior_count, node.prior_mean, node.prior_covariance
        )
        return mean, self.shaped(covariance) + self.floor * np.eye(self.m)

    def shaped(self, covariance: Matrix) -> Matrix:
        """The covariance, or only the variances if the family is diagonal."""
        return np.diag(np.diag(covariance)) if self.config.family == "gaussian_diagonal" else covariance

    def log_density(self, log_densities: list[float]) -> float:
        """log sum_i alpha_i f_i (eq. mixture)."""
        top = max(log_densities)
        return top + log(sum(a * exp(f - top) for a, f in zip(self.alpha, log_densities, strict=True)))

    def node_log_density(self, node: Node, z: Vector) -> float:
        if self.warm and self.config.family == "gaussian_diagonal":
            return self.log_product(node, z, np.ones(self.m, bool))
        delta = z - node.mean
        return self.kernel(node, delta @ node.precision @ delta, node.log_determinant, self.m)

    def kernel(self, node: Node, squared: float, log_determinant: float, m: int) -> float:
        """log of a Gaussian, or of the Student t that predicts the next sample, over m features."""
        if not self.warm:
            return -0.5 * (m * log(2 * pi) + log_determinant + squared)
        nu = node.freedom
        norm = lgamma((nu + m) / 2) - lgamma(nu / 2) - 0.5 * m * log(nu * pi) - 0.5 * log_determinant
        return norm - 0.5 * (nu + m) * log(1 + squared / nu)

    def examine(self, z: Vector) -> Sample:
        """Score a sample by the frozen model, and see which nodes and sides will count it, and as what."""
        missing = np.isnan(z)
        value, spread = z.copy(), np.zeros(self.m)
        if missing.any():
            log_densities, value[missing], spread[missing] = self.impute(z, missing)
        else:
            log_densities = [self.node_log_density(node, z) for node in self.nodes]
        sample = Sample(self.clipped(value), spread, log_densities)
        for i, node in enumerate(self.nodes):
            if node.holds(sample.value):
                sample.sides[i] = self.nearer_side(node, sample.value)
        return sample

    def nearer_side(self, node: Node, x: Vector) -> int:
        """The side of the nearer centroid; ties go left."""
        left, right = (float((x - c) @ (x - c)) for c in node.centroids)
        return LEFT if left <= right else RIGHT

    def clipped(self, x: Vector) -> Vector:
        """Cut at CLIP_SCALES scales, or root deviations if those are larger, from the root's mean."""
        if not self.warm:
            return x
        root, result = self.nodes[0], []
        for j in range(self.m):
            reach = CLIP_SCALES * max(1.0, sqrt(root.covariance[j, j]))
            result.append(min(max(x[j], root.mean[j] - reach), root.mean[j] + reach))
        return np.array(result)

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
        if self.warm and self.config.family == "gaussian_diagonal":
            return self.conditional_by_feature(node, z, missing)
        known, k = ~missing, int(missing.sum())
        s_known, s_cross = node.covariance[np.ix_(known, known)], node.covariance[np.ix_(missing, known)]
        delta = z[known] - node.mean[known]
        mean = node.mean[missing] + s_cross @ np.linalg.solve(s_known, delta)
        covariance = node.covariance[np.ix_(missing, missing)] - s_cross @ np.linalg.solve(s_known, s_cross.T)
        squared = delta @ np.linalg.solve(s_known, delta)
        log_known = self.kernel(node, squared, np.linalg.slogdet(s_known)[1], self.m - k)
        return self.expected(node, squared, k), log_known, mean, np.diag(covariance)

    def expected(self, node: Node, squared: float, k: int) -> float:
        """The expected log density of the whole, the k missing features being drawn given the others."""
        if not self.warm:
            return self.kernel(node, squared + k, node.log_determinant, self.m)
        nu, p = node.freedom, self.m - k
        growth = digamma((nu + self.m) / 2) - digamma((nu + p) / 2)
        return self.kernel(node, squared, node.log_determinant, self.m) - 0.5 * (nu + self.m) * growth

    def conditional_by_feature(
        self, node: Node, z: Vector, missing: NDArray[np.bool_]
    ) -> tuple[float, float, Vector, Vector]:
        """The same for a product of Student t, one a feature."""
        variance = np.diag(node.covariance)
        log_known = self.log_product(node, z, ~missing)
        nu = node.freedom
        entropy = sum(0.5 * log(v) for v in variance[missing]) - missing.sum() * (
            lgamma((nu + 1) / 2)
            - lgamma(nu / 2)
            - 0.5 * log(nu * pi)
            - 0.5 * (nu + 1) * (digamma((nu + 1) / 2) - digamma(nu / 2))
        )
        return log_known - entropy, log_known, node.mean[missing], variance[missing]

    def log_product(self, node: Node, z: Vector, features: NDArray[np.bool_]) -> float:
        """log of a product of Student t over these features."""
        variance = np.diag(node.covariance)
        squares = (z - node.mean) ** 2 / variance
        return sum(self.kernel(node, squares[j], log(variance[j]), 1) for j in np.flatnonzero(features))

    # learning, by rounds

    def learn(self, sample: Sample) -> None:
        """Take a sample into the round, and learn the round once it is as long as it may be."""
        self.round.append(sample)
        longest = min(max(int(self.n_learned * self.config.round_growth), 1), self.config.max_round)
        if len(self.round) >= longest:
            self.end_round()

    def end_round(self) -> None:
        """Weights first, by the densities that the samples had; then the lists; then the splits that are due."""
        if not self.round:
            return
        samples, self.round = self.round, []
        self.move_weights(samples)
        touched = set()
        for sample in samples:
            for i, side in sample.sides.items():
                self.nodes[i].on_side[side].append(sample)
                touched.add(i)
        self.freeze([self.nodes[i] for i in touched])
        for t in range(self.n_learned + 1, self.n_learned + len(samples) + 1):
            if self.is_split_due(t):
                self.split_once()
        self.n_learned += len(samples)

    def retract(self, sample: Sample) -> None:
        self.set_void(sample, True)

    def restore(self, sample: Sample) -> None:
        self.set_void(sample, False)

    def set_void(self, sample: Sample, void: bool) -> None:
        """The sample leaves, or joins again, every list that it is in; tree, weights and priors stay."""
        self.end_round()
        sample.void = void
        lists = [(node, (node.inherited, *node.on_side)) for node in self.nodes]
        self.freeze([node for node, three in lists if any(sample in samples for samples in three)])

    # weights

    def move_weights(self, samples: list[Sample]) -> None:
        """Exponentiated gradient or soft-Bayes; no weight is ever quite zero."""
        log_p = [self.log_density(s.log_densities) for s in samples]
        ratios = [[exp(min(f - p, 690.0)) for f in s.log_densities] for s, p in zip(samples, log_p, strict=True)]
        factors = self.eg_factors(ratios, log_p) if self.config.mixture == "eg" else self.soft_bayes_factors(ratios)
        alpha = [max(a * factor, 1e-300) for a, factor in zip(self.alpha, factors, strict=True)]
        self.alpha = [a / sum(alpha) for a in alpha]

    def eg_factors(self, ratios: list[list[float]], log_p: list[float]) -> list[float]:
        """exp(theta f_i / p), summed over the round (eq. EG), with Theorem 1's theta from running estimates."""
        clipped = [[min(r, RATIO_CAP) for r in row] for row in ratios]
        self.n_weighed += len(ratios)
        self.summed_loss += -sum(log_p)
        self.largest_ratio = max(self.largest_ratio, *(max(row) for row in clipped))
        theta = self.theta(len(self.alpha), self.largest_ratio, self.summed_loss / self.n_weighed, self.n_weighed)
        steps = [theta * sum(row[i] for row in clipped) for i in range(len(self.alpha))]
        return [exp(step - max(steps)) for step in steps]

    def theta(self, n: int, r: float, a: float, t: int) -> float:
        """2 sqrt(ln N) / (R sqrt(2 A T) + R^2 sqrt(ln N)) (Theorem 1)."""
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
        """Split the node with the largest ratio of Alg. 2, if any has two distinct centroids."""
        best, largest = None, 0.0
        for node in self.nodes:
            if self.may_split(node) and self.separation(node) > largest:
                best, largest = node, self.separation(node)
        if best is not None and len(self.nodes) + 2 <= self.config.max_nodes:
            self.split(best)

    def separation(self, node: Node) -> float:
        gap = node.centroids[LEFT] - node.centroids[RIGHT]
        return sqrt(gap @ gap) / 2 ** (node.level + node.times_split)

    def may_split(self, node: Node) -> bool:
        """A warm child needs samples to start from."""
        return not self.warm or min(len(present(side)) for side in node.on_side) >= LEAST_SIDE_COUNT

    def split(self, node: Node) -> None:
        """Cut at the midpoint of the centroids, normal to their difference; two children are appended."""
        normal, offset = self.hyperplane(*node.centroids)
        node.times_split += 1
        children = [Node(node, [*node.path, (normal, offset, side)], self.m) for side in (LEFT, RIGHT)]
        if self.warm:
            for side, child in enumerate(children):
                self.warm_start(child, node.on_side[side], node)
        self.share_weight(node, [len(present(child.inherited)) for child in children])
        self.nodes += children
        self.freeze(children)

    def hyperplane(self, left: Vector, right: Vector) -> tuple[Vector, float]:
        gap = left - right
        normal = gap / sqrt(gap @ gap)
        return normal, float(normal @ (left + right) / 2)

    def warm_start(self, child: Node, samples: list[Sample], node: Node) -> None:
        """The child inherits its side's samples, the void ones too; its 2-means starts along their principal axis."""
        child.inherited = list(samples)
        mean, covariance = weighted_moments(present(samples), 0.0, np.zeros(self.m), np.eye(self.m))
        child.prior_mean, child.prior_covariance = mean, CHILD_SHAPE * self.moments(node)[1]
        variances, axes = np.linalg.eigh(self.shaped(covariance))
        axis = sqrt(variances[-1]) * axes[:, -1]
        if axis[np.argmax(np.abs(axis))] < 0:
            axis = -axis
        child.seeds = mean + axis, mean - axis

    def share_weight(self, node: Node, counts: list[int]) -> None:
        """The node keeps xi of its weight; its children share the rest by count, or in halves if they start empty."""
        at = self.nodes.index(node)
        given = (1 - self.config.xi) * self.alpha[at]
        self.alpha[at] *= self.config.xi
        shares = [c / sum(counts) for c in counts] if self.warm else [0.5, 0.5]
        self.alpha += [given * share for share in shares]


def weighted_moments(
    samples: list[Sample], prior_count: float, prior_mean: Vector, prior_covariance: Matrix
) -> tuple[Vector, Matrix]:
    """Mean and covariance (divisor n) of samples, with the spread of each, and pseudo-samples."""
    total = len(samples) + prior_count
    if not samples:
        return prior_mean, prior_covariance
    values = np.array([s.value for s in samples])
    mean = (values.sum(0) + prior_count * prior_mean) / total
    of_samples = (values - mean).T @ (values - mean) + np.diag(np.array([s.spread for s in samples]).sum(0))
    of_prior = prior_count * (prior_covariance + np.outer(prior_mean - mean, prior_mean - mean))
    return mean, (of_samples + of_prior) / total
