"""The default engine in plain loops: Student t predictives, priors and splits by evidence, odds along the tree.

The specification of core/growth/evidence/, core/families/ and core/mixture/tree_odds.py. What a node, or a side of a
leaf's candidate, knows is computed anew from the list of the samples that it counted. Which hyperplane is proposed is a
heuristic's choice, and any would do: the oracle checks that core searched among the right samples, and takes core's
plane (Searches).
"""

from collections.abc import Callable
from copy import copy
from math import exp, lgamma, log, pi, sqrt

import numpy as np
from scipy.special import digamma, multigammaln

from core.config import DetectorConfig
from core.density.model import REACH
from core.families.marginal_likelihood import MEAN_COUNT, OWN_COUNT, STRENGTHS
from core.families.student_nodes import MOST_FREEDOM, MOST_FREEDOM_PER_FEATURE
from core.growth.evidence.doubt import STRENGTH as DOUBT_STRENGTH
from core.growth.evidence.gain import MARGIN, PRICE_A_FEATURE
from core.growth.evidence.growth import CHECK_GROWTH, EXCHANGE, SEARCH_GROWTH, SLOW
from core.growth.evidence.priors import CHILD_SHAPE
from core.growth.evidence.proposals import ROUNDING
from core.growth.evidence.reservoir import LEAST, LEAST_A_FEATURE, TOTAL
from core.growth.evidence.room import WORTH_OF_USE
from core.growth.evidence.search import Hyperplanes
from core.growth.evidence.worth import MEMORY as WORTH_MEMORY
from core.mixture.base import MEMORY
from core.mixture.nodes import VARIANCE_FLOOR
from core.mixture.tree_odds import MOST_EVIDENCE, MOST_KEEP_ODDS, START_KEEP_ODDS, START_SHARE_COUNT
from tests.oracle.naive_density import LEFT, RIGHT, Matrix, NaiveDensity, Node, Sample, Vector, present
from tests.oracle.naive_scales import NaiveSpreads

TINY = 1e-300
Search = Callable[[Vector, Matrix, int], Hyperplanes | None]


class Searches:
    """The searches that core made, in order: of which samples, and what was found."""

    def __init__(self, search: Callable[..., Hyperplanes | None]) -> None:
        self.search, self.made = search, []

    def by_core(self, X: Vector, covariance: Matrix, least: int, *others: object) -> Hyperplanes | None:
        found = self.search(X, covariance, least, *others)
        self.made.append((X, covariance, least, found))
        return found

    def again(self, X: Vector, covariance: Matrix, least: int) -> Hyperplanes | None:
        """What core found among the same samples."""
        assert self.made, "core made no such search"
        core_X, core_covariance, core_least, found = self.made.pop(0)
        assert core_X.shape == X.shape, f"core searched {len(core_X)} samples, not {len(X)}"
        np.testing.assert_allclose(core_X, X, rtol=1e-9, atol=1e-9)
        if core_covariance.ndim == 1:
            core_covariance = np.diag(core_covariance)
        np.testing.assert_allclose(core_covariance, covariance, rtol=1e-7, atol=1e-9)
        assert core_least == least
        return found


class Candidate:
    """A hyperplane that may cut a leaf, and what fell on its sides."""

    def __init__(self, normal: Vector, offset: float) -> None:
        self.normal, self.offset = normal, offset
        self.sides: tuple[list[Sample], list[Sample]] = ([], [])

    def side(self, x: Vector) -> int:
        return LEFT if self.normal @ x >= self.offset else RIGHT

    def take(self, sample: Sample) -> None:
        self.sides[self.side(sample.value)].append(sample)


class EvidenceNode(Node):
    """A node of a tree that is cut once a node; recent are the last of its samples, for searches."""

    INHERITED = (
        *("counted", "recent", "candidate", "unchecked", "unsearched"),
        *("prior_mean", "mean_count", "scale", "strength", "variance", "odds", "saved"),
    )
    """What a node takes from the child that takes its place."""

    def __init__(self, parent: "EvidenceNode | None", path: list[tuple[Vector, float, int]], m: int) -> None:
        super().__init__(parent, path, m, 0.0)
        self.children: list[EvidenceNode] = []
        self.candidate: Candidate | None = None
        self.recent: list[Sample] = []
        self.unchecked: list[Sample] = []
        self.unsearched: list[Sample] = []
        self.variance = np.ones(m)
        self.odds, self.share = 0.0, 1.0
        self.used, self.saved = 1.0, 0.0

    def below(self) -> "list[EvidenceNode]":
        """All nodes under this one."""
        return [node for child in self.children for node in (child, *child.below())]


class NaiveEvidence(NaiveDensity):
    """The mixture of Student t over a tree that is cut by evidence."""

    spreads_type = NaiveSpreads
    searches: Searches
    """Set by who runs core beside this."""

    def __init__(self, config: DetectorConfig) -> None:
        self.spreads, self.follows = self.spreads_type(config.n_columns, len(config.values)), config.scaling == "auto"
        self.floor = self.spreads.floor(VARIANCE_FLOOR)
        super().__init__(config)
        root = EvidenceNode(None, [], self.m)
        root.mean_count = root.strength = config.prior_count
        self.nodes = [root]
        self.least = self.m + 1
        self.n_weighed_full = 0
        self.freeze()

    def weights_that_score(self) -> list[float]:
        """alpha_i pi_i, eq. (34), normalised, unless labelled normals alone are learned."""
        if self.config.learn_from == "labelled_normal":
            return self.alpha
        counts = [self.total(node.counted) for node in self.nodes]
        weights = [a * self.normality(n, counts[0]) for a, n in zip(self.alpha, counts, strict=True)]
        return [w / sum(weights) for w in weights]

    def normality(self, n: float, of: float) -> float:
        return (n + 1) / (n + 1 + 0.2 * (of + 1))

    # the densities

    def widen(self, node: Node) -> None:
        """The posterior predictive: a wider matrix, and degrees of freedom."""
        n, k0 = self.total(node.counted), node.mean_count
        node.covariance = node.covariance * (n + k0 + 1) / (n + k0)
        node.freedom = min(n + node.strength, MOST_FREEDOM + MOST_FREEDOM_PER_FEATURE * self.m)

    def centroid(self, node: Node, side: int) -> Vector:
        return np.zeros(self.m)

    def node_log_density(self, node: Node, z: Vector) -> float:
        if self.config.family == "gaussian_diagonal":
            return self.log_product(node, z, np.ones(len(z), bool))
        return super().node_log_density(node, z)

    def kernel(self, node: Node, squared: float, log_determinant: float, m: int) -> float:
        """log of the Student t that predicts the next sample, over m features."""
        nu = node.freedom
        norm = lgamma((nu + m) / 2) - lgamma(nu / 2) - 0.5 * m * log(nu * pi) - 0.5 * log_determinant
        return norm - 0.5 * (nu + m) * log(1 + squared / nu)

    def conditional(self, node: Node, z: Vector, missing: Vector) -> tuple[float, float, Vector, Vector]:
        if self.config.family == "gaussian_diagonal":
            return self.conditional_by_feature(node, z, missing)
        return super().conditional(node, z, missing)

    def expected(self, node: Node, squared: float, k: int) -> float:
        nu, m = node.freedom, len(node.mean)
        growth = digamma((nu + m) / 2) - digamma((nu + m - k) / 2)
        return self.kernel(node, squared, node.log_determinant, m) - 0.5 * (nu + m) * growth

    def conditional_by_feature(self, node: Node, z: Vector, missing: Vector) -> tuple[float, float, Vector, Vector]:
        """A product of Student t, one a feature: those missing give minus their entropy."""
        variance, nu = np.diag(node.covariance), node.freedom
        log_known = self.log_product(node, z, ~missing)
        entropy = sum(0.5 * log(v) for v in variance[missing]) - missing.sum() * (
            lgamma((nu + 1) / 2)
            - lgamma(nu / 2)
            - 0.5 * log(nu * pi)
            - 0.5 * (nu + 1) * (digamma((nu + 1) / 2) - digamma(nu / 2))
        )
        return log_known - entropy, log_known, node.mean[missing], variance[missing] * self.stretch(node, 0.0, 0)

    def stretch(self, node: Node, squared: float, known: int) -> float:
        """Of a Student t given some features; below three degrees of freedom as at three."""
        return (node.freedom + squared) / max(node.freedom + known - 2, 1)

    def log_product(self, node: Node, z: Vector, features: Vector) -> float:
        """log of a product of Student t over these features."""
        variance = np.diag(node.covariance)
        squares = (z - node.mean) ** 2 / variance
        return sum(self.kernel(node, squares[j], log(variance[j]), 1) for j in np.flatnonzero(features))

    def drawn_in(self, x: Vector) -> Vector:
        """Back along the line to the root's mean, to sqrt(m) + REACH of its deviations."""
        root, reach = self.nodes[0], sqrt(self.m) + REACH
        off = x - root.mean
        distance = sqrt(off @ root.precision @ off)
        return x if distance <= reach else root.mean + off * reach / distance

    def nearer_side(self, node: Node, x: Vector) -> int:
        return LEFT

    # the weights: what reaches a node is kept with some odds, or passed on to the children by their shares

    def move_weights(self, samples: list[Sample]) -> None:
        if self.is_full():
            self.weigh_worth(samples)
        if self.config.mixture != "tree":
            super().move_weights(samples)
        elif len(self.nodes) > 1:
            self.move_odds(samples)

    def own_shares(self, sample: Sample) -> dict[int, float]:
        """Each node's share in a sample's density, by the node's id."""
        log_p = self.log_density(sample.log_densities)
        terms = zip(self.nodes, self.alpha, sample.log_densities, strict=True)
        return {id(node): exp(log(max(a, TINY)) + f - log_p) for node, a, f in terms}

    def move_odds(self, samples: list[Sample]) -> None:
        steps = {id(node): 0.0 for node in self.nodes}
        reaches = {id(node): 0.0 for node in self.nodes}
        for sample in samples:
            own = self.own_shares(sample)
            for node in self.nodes:
                passed = sum(own[id(b)] for b in node.below())
                reached = own[id(node)] + passed
                reaches[id(node)] += reached
                said = log(max(own[id(node)], TINY) / max(passed, TINY)) - node.odds
                steps[id(node)] += reached * clipped(said, MOST_EVIDENCE)
        for node in self.nodes:
            if node.children:
                node.odds = clipped(node.odds + steps[id(node)], MOST_KEEP_ODDS)
                self.move_shares(node.children, reaches)
        self.place()

    def move_shares(self, pair: list[EvidenceNode], reaches: dict[int, float]) -> None:
        """What has reached each of two children, of the last MEMORY samples or so, or a half-life if that is less."""
        for child in pair:
            child.share += reaches[id(child)]
        both = sum(child.share for child in pair)
        memory = min(MEMORY, self.config.half_life_samples or MEMORY)
        if both > memory:
            for child in pair:
                child.share *= memory / both

    def place(self) -> None:
        """alpha: the product of what is passed on down the path, times what the node keeps."""
        self.alpha = [max(self.reach(node) * self.keeps(node), TINY) for node in self.nodes]
        self.alpha = [a / sum(self.alpha) for a in self.alpha]

    def keeps(self, node: EvidenceNode) -> float:
        return 1 / (1 + exp(-node.odds)) if node.children else 1.0

    def reach(self, node: EvidenceNode) -> float:
        if node.parent is None:
            return 1.0
        both = sum(child.share for child in node.parent.children)
        return self.reach(node.parent) * (1 - self.keeps(node.parent)) * node.share / both

    # growth

    def grow(self, samples: list[Sample], before: int) -> None:
        for sample in samples:
            for node in self.nodes:
                if node.holds(sample.value):
                    node.unchecked.append(sample)
                    node.unsearched.append(sample)
                    if not node.children:
                        node.recent.append(sample)
                    if node.candidate is not None:
                        node.candidate.take(sample)
        self.trim()
        self.look_at_spreads(samples)
        due = [node for node in self.nodes if self.is_due(node, node.unchecked, CHECK_GROWTH)]
        for node in due:
            node.unchecked = []
        self.choose_priors(due)
        if self.config.max_nodes > 1:
            self.consider([node for node in due if not node.children])
        if self.config.split != "evidence":
            for t in range(before + 1, self.n_learned + 1):
                if self.is_split_due(t):
                    self.split_most_separated()

    def look_at_spreads(self, samples: list[Sample]) -> None:
        """Let spreads follow the samples."""
        looks = [self.spreads.learn(sample.came[: self.config.n_features]) for sample in samples]
        if self.follows and any(looks) and self.spreads.look():
            self.follow()

    def tell(self, j: int, spread: float, coarse: bool) -> None:
        """What differs from most values of a feature has told its spread."""
        self.end_round()
        before = self.spreads.spread[j], self.spreads.coarse[j]
        self.spreads.tell(j, spread, coarse)
        if before != (spread, coarse):
            self.follow()
        self.freeze()

    def child_variance(self, own: Vector) -> Vector:
        """What a child expects of its parent's own variance: no more than the spread, if that has become less."""
        calm = [s**2 if s < most else np.inf for s, most, _ in zip(*self.spreads.now(), strict=True)]
        return np.minimum(CHILD_SHAPE * own, calm)

    def follow(self) -> None:
        """Expect of every node what fits the spreads."""
        self.followed, self.floor = True, self.spreads.floor(VARIANCE_FLOOR)
        for node in self.nodes:
            node.variance = np.maximum(self.child_variance(node.variance / CHILD_SHAPE), CHILD_SHAPE * self.floor)
            node.scale = node.scale + np.diag(np.maximum(self.floor - np.diag(node.scale), 0.0))
        self.nodes[0].variance = np.array(self.spreads.spread) ** 2
        self.choose_priors([node for node in self.nodes if self.total(node.counted) >= 2])

    def newest(self, n: int) -> list[Vector]:
        """The newest samples that the leaves keep."""
        kept = [s for node in self.nodes if not node.children for s in present(node.recent)]
        return [s.value for s in sorted(kept, key=lambda s: s.ordinal)[-n:]]

    def trim(self) -> None:
        """A leaf keeps no more recent samples than its share."""
        leaves = [node for node in self.nodes if not node.children]
        most = max(LEAST, LEAST_A_FEATURE * (self.m + 1), TOTAL // len(leaves))
        for leaf in leaves:
            if len(rows := present(leaf.recent)) > most:
                leaf.recent = [s for s in leaf.recent if s.ordinal > rows[-most - 1].ordinal]

    def is_due(self, node: EvidenceNode, new: list[Sample], growth: tuple[float, float]) -> bool:
        """Whether what is new has made the node grow by so much."""
        n, fresh = self.total(node.counted), sum(self.weight(s) for s in new)
        rate = growth[0] if n < SLOW else growth[1]
        return n >= 2 and fresh > 0 and fresh >= rate * max(n - fresh, 0.0)

    def choose_priors(self, nodes: list[EvidenceNode]) -> None:
        """Scale and strength of highest evidence, by what the parents were before."""
        chosen = [
            self.best_prior(
                self.total(node.counted), self.about_prior(node), node.variance, node.parent, node.mean_count
            )
            for node in nodes
        ]
        for node, (_, _, scale, strength) in zip(nodes, chosen, strict=True):
            node.scale, node.strength = scale, strength

    def best_prior(
        self, n: float, scatter: Matrix, variance: Vector, parent: EvidenceNode | None, mean_count: float
    ) -> tuple[float, float, Matrix, float]:
        """Evidence, the context's, scale and strength of the best prior, given the context: own variances, without or
        with the parent's correlations.
        """
        tried = []
        for scale in self.possible_scales(n, scatter, variance, parent):
            for a in STRENGTHS.tolist():
                whole = self.log_evidence(n, scatter, scale, a, mean_count)
                tried.append((whole, self.evidence_of_context(n, scatter, scale, a, mean_count), scale, a))
        return max(tried, key=lambda each: each[0] - each[1])

    def evidence_of_context(self, n: float, S: Matrix, T: Matrix, a: float, k0: float) -> float:
        """The log marginal likelihood of the context alone, under the same prior."""
        if not self.context.any():
            return 0.0
        c = np.ix_(self.context, self.context)
        return self.log_evidence(n, S[c], T[c], a, k0)

    def possible_scales(self, n: float, scatter: Matrix, variance: Vector, parent: EvidenceNode | None) -> list[Matrix]:
        own = (OWN_COUNT * variance + np.diag(scatter)) / (OWN_COUNT + n) + self.floor
        if parent is None or self.config.family == "gaussian_diagonal":
            return [np.diag(own)]
        of_parent = self.posterior(parent)[1]
        d = np.sqrt(np.diag(of_parent))
        correlated = of_parent / np.outer(d, d) * np.sqrt(np.outer(own, own))
        n_parent = self.total(parent.counted)
        credit = n_parent / (n_parent + self.m * (self.m + 1) / 2)
        return [np.diag(own), (1 - credit) * np.diag(own) + credit * correlated]

    def log_evidence(self, n: float, S: Matrix, T: Matrix, a: float, k0: float) -> float:
        """log marginal likelihood of a Gaussian under the normal-inverse-Wishart, or -gamma a feature when diagonal."""
        if self.config.family == "gaussian_diagonal":
            return sum(niw(n, S[j : j + 1, j : j + 1], T[j : j + 1, j : j + 1], a, k0) for j in range(len(S)))
        return niw(n, S, T, a, k0)

    def consider(self, leaves: list[EvidenceNode]) -> None:
        """Cut leaves for which the evidence is; look for a better candidate elsewhere."""
        grown = {id(node) for node in leaves if self.is_due(node, node.unsearched, SEARCH_GROWTH)}
        for leaf in leaves:
            if leaf.children or leaf not in self.nodes:
                continue
            gain = self.candidate_gain(leaf)
            if gain <= 0 and (id(leaf) in grown or leaf.candidate is None):
                gain = self.look(leaf, gain)
            if gain > 0 and self.config.split != "scheduled":
                self.cut(leaf, gain)

    def candidate_gain(self, leaf: EvidenceNode) -> float:
        if leaf.candidate is None or min(self.total(side) for side in leaf.candidate.sides) < self.least:
            return -np.inf
        return self.gain(leaf, leaf.candidate)

    def gain(self, leaf: EvidenceNode, candidate: Candidate) -> float:
        """Evidence of the two sides against that of the whole, less the price of the hyperplane."""
        own, (left, right) = np.diag(self.posterior(leaf)[1]), candidate.sides
        parts = [self.evidence_of([*left, *right], own, leaf.parent)]
        parts += [self.evidence_of(side, self.child_variance(own), leaf) for side in (left, right)]
        a, b = self.total(left), self.total(right)
        share = lgamma(a + 0.5) + lgamma(b + 0.5) - lgamma(a + b + 1) - log(pi)
        of_all, of_context = (each[1] + each[2] - each[0] + share for each in zip(*parts, strict=True))
        of_all -= MARGIN + 0.5 * PRICE_A_FEATURE * self.m * log(a + b)
        if not self.context.any() or of_all - max(of_context, 0.0) <= 0:
            return of_all - max(of_context, 0.0) * self.context.any()
        return of_all - max(of_context + (a + b) * self.doubt(leaf, candidate), 0.0)

    def evidence_of(self, samples: list[Sample], variance: Vector, parent: EvidenceNode | None) -> tuple[float, float]:
        """Of the samples, and of their context."""
        return self.best_prior(self.total(samples), self.scatter_of(samples), variance, parent, MEAN_COUNT)[:2]

    def doubt(self, leaf: EvidenceNode, candidate: Candidate) -> float:
        """By how much less surely the context tells the side of a recent sample than all of it does; the mean."""
        rows = present(leaf.recent)
        if not rows:
            return 0.0
        X, variance = np.array([s.value for s in rows]), self.child_variance(np.diag(self.posterior(leaf)[1]))
        left = np.array([candidate.side(x) == LEFT for x in X])
        everything = np.ones(self.m, bool)
        return (
            self.uncertainty(X, left, variance, self.context) - self.uncertainty(X, left, variance, everything)
        ) / len(X)

    def uncertainty(self, X: Matrix, left: Vector, variance: Vector, columns: Vector) -> float:
        """-log P(side | these columns), summed over samples, each by the predictives of the sides without itself."""
        C, total = X[:, columns], 0.0
        for i in range(len(C)):
            others = np.arange(len(C)) != i
            terms = []
            for side in (left, ~left):
                law = self.predictive_of(C[side], C[side & others], variance[columns], self.least_variance[columns])
                terms.append(log(max(side.sum(), 1)) + law(C[i]))
            total += np.logaddexp(*terms) - terms[0 if left[i] else 1]
        return total

    @property
    def least_variance(self) -> Vector:
        return np.broadcast_to(self.floor, (self.m,))

    def predictive_of(self, side: Matrix, rest: Matrix, variance: Vector, floor: Vector) -> Callable[[Vector], float]:
        """The Student t of the next of these samples, of which side has one more; its prior is the side's."""
        n, k, nu = len(rest), len(rest) + MEAN_COUNT, len(rest) + DOUBT_STRENGTH
        center = side.sum(0) / max(len(side), 1)
        off = side - center
        scale = np.maximum((OWN_COUNT * variance + (off * off).sum(0)) / (OWN_COUNT + len(side)) + floor, floor)
        mean = rest.mean(0) if n else center
        T = (rest - mean).T @ (rest - mean) + np.outer(mean - center, mean - center) * n * MEAN_COUNT / k
        T = self.shaped(T + DOUBT_STRENGTH * np.diag(scale)) / nu * (k + 1) / k
        law = copy(self.nodes[0])
        law.mean, law.covariance, law.freedom = (n * mean + MEAN_COUNT * center) / k, T, nu
        law.precision, law.log_determinant = np.linalg.inv(T), np.linalg.slogdet(T)[1]
        return lambda x: self.node_log_density(law, x)

    def look(self, leaf: EvidenceNode, gain: float) -> float:
        """Search the leaf's recent samples for a better candidate; the gain of the one that it has then."""
        rows = present(leaf.recent)
        if len(rows) < 2 * self.least:
            return gain
        leaf.unsearched = []
        plane = self.best_plane(leaf, np.array([s.value for s in rows]))
        if plane is None:
            return gain
        new = Candidate(*plane)
        for sample in leaf.recent:
            new.take(sample)
        if min(self.total(side) for side in new.sides) < self.least:
            return gain
        promise = self.gain(leaf, new)
        if self.is_no_better(promise, new, gain, leaf.candidate):
            return gain
        leaf.candidate = new
        return promise

    def best_plane(self, leaf: EvidenceNode, X: Matrix) -> tuple[Vector, float] | None:
        """What core found where every feature has a spread of one, back in the scaled space."""
        spread = np.array(self.spreads.spread)
        covariance = self.posterior(leaf)[1] / np.outer(spread, spread)
        plane = self.searches.again(X / spread, covariance, self.least)
        if plane is None:
            return None
        normal, offset = plane.normal[0] / spread, float(plane.offset[0])
        return normal / np.linalg.norm(normal), offset / float(np.linalg.norm(normal))

    def is_no_better(self, promise: float, new: Candidate, gain: float, old: Candidate | None) -> bool:
        """A candidate that is known to be poor stays unless the new one is for a cut, or less against it a sample."""
        if not np.isfinite(gain) or promise > 0:
            return False
        return promise / sum(map(self.total, new.sides)) <= gain / sum(map(self.total, old.sides)) + ROUNDING

    def split_most_separated(self) -> None:
        """Alg. 2's choice: the largest distance of the sides' means, halved for every level."""
        if self.is_full():
            return
        best, largest = None, -1.0
        for node in self.nodes:
            if node.children or node.candidate is None:
                continue
            left, right = node.candidate.sides
            if min(self.total(left), self.total(right)) >= self.least:
                between = (self.mean_of(left) - self.mean_of(right)) / np.array(self.spreads.spread)
                gap = np.linalg.norm(between) / 2**node.level
                if gap > largest:
                    best, largest = node, gap
        if best is not None:
            self.cut(best, 0.0)

    def cut(self, leaf: EvidenceNode, gain: float) -> None:
        """Cut a leaf by its candidate: a child counts all that the candidate counted on its side."""
        at = len(self.nodes)
        if self.is_full():
            at = self.make_room(leaf, gain)
            if at is None:
                return
        own, candidate = np.diag(self.posterior(leaf)[1]), leaf.candidate
        plane = candidate.normal, candidate.offset
        leaf.children = [EvidenceNode(leaf, [*leaf.path, (*plane, side)], self.m) for side in (LEFT, RIGHT)]
        leaf.candidate = None
        for side, child in enumerate(leaf.children):
            self.start(child, candidate, side, own, leaf)
        self.nodes[at:at], self.alpha[at:at] = leaf.children, [0.0, 0.0]
        self.choose_priors(leaf.children)
        counts = [self.total(child.counted) for child in leaf.children]
        self.share_out(leaf, [n / sum(counts) for n in counts], at)
        leaf.saved = max(gain, 0.0) / sum(counts) * leaf.used

    def start(self, child: EvidenceNode, candidate: Candidate, side: int, own: Vector, leaf: EvidenceNode) -> None:
        child.counted = list(candidate.sides[side])
        child.prior_mean, child.mean_count = self.mean_of(child.counted), MEAN_COUNT
        child.variance = self.child_variance(own)
        child.recent = [s for s in leaf.recent if candidate.side(s.value) == side]
        child.unchecked, child.unsearched = present(child.counted), present(child.counted)

    def share_out(self, leaf: EvidenceNode, shares: list[float], at: int) -> None:
        leaf.odds = START_KEEP_ODDS
        for child, share in zip(leaf.children, shares, strict=True):
            child.share = START_SHARE_COUNT * share
            child.used, child.saved = leaf.used * share, 0.0
        if self.config.mixture == "tree":
            self.place()
        else:
            i = self.nodes.index(leaf)
            given = (1 - self.config.xi) * self.alpha[i]
            self.alpha[i] *= self.config.xi
            self.alpha[at : at + 2] = [given * share for share in shares]

    # the cap

    def is_full(self) -> bool:
        return len(self.nodes) + 2 > self.config.max_nodes

    def weigh_worth(self, samples: list[Sample]) -> None:
        """Running means: the share that reaches a node, and the nats that its children save."""
        self.n_weighed_full += len(samples)
        decay = exp(-len(samples) / WORTH_MEMORY)
        means = {id(node): [0.0, 0.0] for node in self.nodes}
        alpha = {id(node): a for node, a in zip(self.nodes, self.alpha, strict=True)}
        for sample in samples:
            own = self.own_shares(sample)
            for node in self.nodes:
                passed = sum(own[id(b)] for b in node.below())
                reached = own[id(node)] + passed
                means[id(node)][0] += reached / len(samples)
                if node.children:
                    odds = log(alpha[id(node)]) - log(max(sum(alpha[id(b)] for b in node.below()), TINY))
                    said = log(max(passed, TINY) / max(own[id(node)], TINY)) + odds
                    means[id(node)][1] += reached * clipped(said, MOST_EVIDENCE) / len(samples)
        for node in self.nodes:
            used, saved = means[id(node)]
            node.used = decay * node.used + (1 - decay) * used
            node.saved = decay * node.saved + (1 - decay) * saved

    def make_room(self, leaf: EvidenceNode, gain: float) -> int | None:
        """Where the pair stood that is given up for this leaf's cut; None if none is worth that little."""
        prices = []
        for at in range(1, len(self.nodes), 2):
            pair = self.nodes[at : at + 2]
            leaves = [child for child in pair if not child.children]
            if leaf in leaves:
                continue
            if len(leaves) == 2:
                prices.append((pair[0].parent.saved, at, None))
            if pair[0].parent is not self.nodes[0]:
                prices += [(WORTH_OF_USE * child.used, at, child) for child in leaves]  # its sibling takes the place
        if not prices or self.n_weighed_full < WORTH_MEMORY:
            return None
        price, at, idle = min(prices, key=lambda p: p[0])
        if gain / sum(map(self.total, leaf.candidate.sides)) * leaf.used < EXCHANGE * price:
            return None
        if idle is None:
            self.collapse(at)
        else:
            self.lift(at, idle)
        return at

    def collapse(self, at: int) -> None:
        """Two leaves return into their node; what cut them stays as its candidate."""
        pair, weights = self.nodes[at : at + 2], self.alpha[at : at + 2]
        node = pair[0].parent
        normal, offset, _ = pair[0].path[-1]
        node.candidate = Candidate(normal, offset)
        for child, side in zip(pair, node.candidate.sides, strict=True):
            side += child.counted
        node.recent = sorted(pair[0].recent + pair[1].recent, key=lambda s: s.ordinal)
        node.unchecked, node.unsearched, node.children = [], [], []
        self.alpha[self.nodes.index(node)] += sum(weights)
        del self.nodes[at : at + 2], self.alpha[at : at + 2]

    def lift(self, at: int, idle: EvidenceNode) -> None:
        """A leaf goes, and its parent with it: the sibling, with all it knows, takes the parent's place and space."""
        pair, weights = self.nodes[at : at + 2], self.alpha[at : at + 2]
        node, (child,) = idle.parent, (c for c in pair if c is not idle)
        for below in child.below():
            del below.path[node.level]
        for name in EvidenceNode.INHERITED:
            setattr(node, name, getattr(child, name))
        node.children = child.children
        for grandchild in node.children:
            grandchild.parent = node
        self.alpha[self.nodes.index(node)] += sum(weights)
        del self.nodes[at : at + 2], self.alpha[at : at + 2]


def niw(n: float, S: Matrix, T: Matrix, a: float, k0: float) -> float:
    """The textbook's log marginal likelihood: nu0 = a + m - 1, Psi0 = a T (Murphy 2007, eq. 266)."""
    m = len(S)
    nu0 = a + m - 1
    return (
        multigammaln((nu0 + n) / 2, m)
        - multigammaln(nu0 / 2, m)
        + nu0 / 2 * np.linalg.slogdet(a * T)[1]
        - (nu0 + n) / 2 * np.linalg.slogdet(a * T + S)[1]
        - n * m / 2 * log(pi)
        + m / 2 * log(k0 / (k0 + n))
    )


def clipped(value: float, limit: float) -> float:
    return min(max(value, -limit), limit)
