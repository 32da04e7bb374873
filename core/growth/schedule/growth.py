"""The paper's growth (Alg. 2): a sequential 2-means in every node, and splits at t = beta^k learned samples."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray
from core.config import DetectorConfig
from core.families.statistics import Moments
from core.growth.base import Growth
from core.growth.schedule.dates import splits_due
from core.growth.schedule.two_means import TwoMeans
from core.mixture.learned import Groups, LearnedBatch, LearnedSample
from core.mixture.nodes import Nodes
from core.snapshot import Arrays


class ScheduledGrowth(Growth):
    """Cuts the node of the largest ratio, eq. (8), which may be cut again. Children start empty, with the root's prior.

    Deviations are those of TwoMeans and next_split.
    """

    def __init__(self, config: DetectorConfig, nodes: Nodes) -> None:
        self._config, self._nodes = config, nodes
        self.most_sides = config.max_nodes
        self._means = TwoMeans(config.n_columns)

    def sides(self, X: FloatArray) -> BoolArray:
        return self._means.nearer_left(X)

    def keys(self, X: FloatArray, held: BoolArray) -> IntArray:
        return np.arange(len(X))

    def count(self, learned: LearnedBatch, held: BoolArray, groups: Groups, moments: Moments) -> None:
        self._means.move(held, learned.left, learned.x, learned.weight)

    def change(self, sample: LearnedSample, sign: int, weight: float) -> None:
        cells = self._nodes.tree.counting(sample.x, sample.ordinal)
        self._means.change(cells, sample.left[cells], sample.x, sign * weight)

    def grow(self, before: int, after: int) -> None:
        for _ in range(splits_due(self._config.beta, before, after)):
            node = self._means.most_separated(self._nodes.tree)
            if node is not None and self._nodes.tree.n_nodes + 2 <= self._config.max_nodes:
                self._split(node, after)

    def fade(self, factor: float) -> None:
        self._means.fade(factor)

    def _split(self, node: int, n_learned: int) -> None:
        nodes, prior = self._nodes, self._nodes.prior
        pair = nodes.cut(node, *self._means.hyperplane(node), n_learned + 1)
        prior.mean_count[pair.children], prior.strength[pair.children] = prior.mean_count[0], prior.strength[0]
        prior.scale[pair.children] = prior.scale[0]
        nodes.mixture.split(pair, self._config.xi, 0.5)
        self._means.add_pair()

    def state(self) -> dict[str, NDArray[Any]]:
        return self._means.state()

    def check(self, arrays: Arrays, times_cut: IntArray, n_learned: int) -> None:
        self._means.check(arrays, len(times_cut))

    def load(self, arrays: Arrays) -> None:
        self._means.load(arrays)
