"""One hyperplane for each leaf that may cut it, and what has fallen on its two sides since it was found."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray, grown
from core.errors import InvalidSnapshot
from core.families.statistics import Moments, Statistics
from core.growth.evidence.search import Hyperplanes
from core.snapshot import Arrays, take
from core.tree.subspaces import are_directions, distances_each


class Candidates:
    """Arrays by node: has (N,), normal (N, m), offset (N,), since (N,).

    The sides of node i's candidate are cells 2 i (left) and 2 i + 1 (right) of the statistics.

    A candidate never moves, so a sample's side can be found again at any time. It counts the samples that its leaf
    counted from ordinal since[i] on.
    """

    ARRAYS: Final = ("has", "normal", "offset", "since")

    def __init__(self, n_features: int, statistics: Statistics) -> None:
        self.has = np.zeros(1, bool)
        self.normal, self.offset = np.zeros((1, n_features)), np.zeros(1)
        self.since = np.zeros(1, np.int64)
        self.statistics = statistics.empty(2)

    def cells(self, X: FloatArray, leaf: IntArray) -> IntArray:
        """The cell (n,) of each sample (n, m): the side of its leaf's candidate, leaf (n,), on which it falls."""
        left = distances_each(X, self.normal[leaf]) >= self.offset[leaf]
        cells: IntArray = 2 * leaf + ~left
        return cells

    def count(self, cells: IntArray, moments: Moments) -> None:
        """Count groups of samples in these cells (g,), as far as their leaves have a candidate."""
        known = self.has[cells // 2]
        self.statistics.merge(cells[known], Moments(moments.count[known], moments.mean[known], moments.scatter[known]))

    def sizes(self, leaves: IntArray) -> FloatArray:
        """The weight that each side of these leaves' candidates has counted, (k, 2); 0 without a candidate."""
        return np.where(self.has[leaves, None], self.statistics.count.reshape(-1, 2)[leaves], 0.0)

    def sides(self, leaves: IntArray) -> tuple[Moments, Moments]:
        """The moments of the left and of the right sides of these leaves' candidates."""
        return self.statistics.of(2 * leaves), self.statistics.of(2 * leaves + 1)

    def plane(self, leaf: int) -> Hyperplanes:
        """The hyperplane of a leaf's candidate."""
        return Hyperplanes(self.normal[[leaf]], self.offset[[leaf]])

    def put(self, leaf: int, plane: Hyperplanes, since: int, sides: Moments) -> None:
        """Give a leaf a candidate, whose sides start with these moments (2,), left first."""
        self.has[leaf], self.normal[leaf], self.offset[leaf] = True, plane.normal[0], plane.offset[0]
        self.since[leaf] = since
        self.statistics.put(np.array([2 * leaf, 2 * leaf + 1]), sides)

    def move(self, source: int, target: int) -> None:
        """Copy a node's candidate to another node."""
        for name in self.ARRAYS:
            getattr(self, name)[target] = getattr(self, name)[source]
        cells = np.array([2 * source, 2 * source + 1])
        self.statistics.put(cells + 2 * (target - source), self.statistics.of(cells))

    def clear(self, nodes: IntArray) -> None:
        """Remove the candidates of these nodes."""
        self.has[nodes] = False

    def grow(self, n_nodes: int) -> None:
        """Make room for more nodes."""
        for name in self.ARRAYS:
            setattr(self, name, grown(getattr(self, name), n_nodes))
        self.statistics.grow(2 * n_nodes)

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays of a snapshot, by name; of the sides only those of candidates that there are."""
        arrays: dict[str, NDArray[Any]] = {f"candidate_{name}": getattr(self, name) for name in self.ARRAYS}
        there = np.flatnonzero(np.repeat(self.has, 2))
        some = self.statistics.empty(len(there))
        some.put(np.arange(len(there)), self.statistics.of(there))
        return arrays | some.state("side")

    def check(self, arrays: Arrays, leaf: BoolArray, n_learned: int) -> None:
        """Raise InvalidSnapshot if a state does not fit a tree with these leaves (N,), and n_learned samples."""
        has, normal, _, since = (
            take(arrays, f"candidate_{name}", old.dtype.type, (len(leaf), *old.shape[1:]))
            for name, old in ((name, getattr(self, name)) for name in self.ARRAYS)
        )
        if (has & ~leaf).any() or not are_directions(normal[has]):
            raise InvalidSnapshot("its candidates are not hyperplanes of leaves")
        if ((since < 0) | (since > n_learned + 1)).any():
            raise InvalidSnapshot("its candidates count from a sample on that has not come")
        self.statistics.check(arrays, "side", 2 * int(np.count_nonzero(has)))

    def load(self, arrays: Arrays) -> None:
        """Continue from a state that check has passed."""
        for name in self.ARRAYS:
            setattr(self, name, arrays[f"candidate_{name}"])
        self.statistics.grow(2 * len(self.has))
        there = np.flatnonzero(np.repeat(self.has, 2))
        some = self.statistics.empty(len(there))
        some.load(arrays, "side")
        self.statistics.put(there, some.of(np.arange(len(there))))
