"""The tree of subspaces (Alg. 2): hyperplanes, membership, and the sequential 2-means of every node. Flat arrays."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray, grown, product_by_blocks
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take

LEFT: Final = 0
RIGHT: Final = 1
_LARGEST_SUM: Final = 1e117


@dataclass(frozen=True, slots=True)
class Split:
    """A node's new hyperplane: left child where normal . x >= offset, right child elsewhere."""

    node: int
    left: int
    right: int


class SubspaceTree:
    """N nested subspaces, the root (node 0) being the whole space.

    A node may be split more than once, each time by a better hyperplane; the earlier children stay. Children have
    higher numbers than their parent. Node j was made by hyperplane cut[j] of its parent, on that side of it, at the end
    of round born[j]: it counts the samples of later rounds by its hyperplanes, and if children are warm inherits
    earlier ones.
    """

    NODE_ARRAYS: Final = ("parent", "level", "times_split", "born", "cut", "side", "centroid_count", "centroid_sum")
    CUT_ARRAYS: Final = ("normal", "offset")

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        self.n_nodes, self.n_cuts = 1, 0
        self.parent, self.level, self.times_split = np.full(1, -1), np.zeros(1, np.int64), np.zeros(1, np.int64)
        self.born = np.zeros(1, np.int64)
        self.cut, self.side = np.full(1, -1), np.zeros(1, np.int64)
        self.centroid_count, self.centroid_sum = np.ones((1, 2)), np.zeros((1, 2, n_features))
        self.normal, self.offset = np.zeros((0, n_features)), np.zeros(0)
        self._require()
        self._freeze()

    def locate(self, Z: FloatArray) -> tuple[BoolArray, BoolArray]:
        """Which subspaces hold each sample (n, m), and whether a node's left centroid is the nearer one: (n, N) both.

        Ties go left.
        """
        distance = product_by_blocks(Z, self._columns)
        above = distance[:, : self.n_cuts] >= self.offset
        met = (2.0 * above - 1.0) @ self._required
        return met == self.level, distance[:, self.n_cuts :] >= self._gap_offset

    def move_centroids(self, counted: BoolArray, left: BoolArray, Z: FloatArray) -> None:
        """One step of every sequential 2-means for each sample: the nearer centroid of each node that holds it."""
        for side, taken in ((LEFT, counted & left), (RIGHT, counted & ~left)):
            weights = taken.astype(float)
            self.centroid_count[:, side] += weights.sum(0)
            self.centroid_sum[:, side] += weights.T @ Z
        self._freeze()

    def change_centroids(self, nodes: IntArray, left: BoolArray, z: FloatArray, sign: int) -> None:
        """Take a sample (m,) out of (sign -1) or into (sign +1) the sides of these nodes that counted it."""
        side = np.where(left, LEFT, RIGHT)
        self.centroid_count[nodes, side] += sign
        self.centroid_sum[nodes, side] += sign * z
        self._freeze()

    def centroids(self) -> FloatArray:
        """Centroids (N, 2, m): sum over count, counts starting at 1 (Alg. 2)."""
        centers: FloatArray = self.centroid_sum / self.centroid_count[:, :, None]
        return centers

    def separation(self) -> FloatArray:
        """||c_L - c_R|| / 2^(level + times split), (N,): the ratio of Alg. 2 by which a node is chosen.

        The paper's exponent is the level alone; then the root wins for ever. Its own figure needs a node's splits to
        count.
        """
        centers = self.centroids()
        gap: FloatArray = np.linalg.norm(centers[:, LEFT] - centers[:, RIGHT], axis=1)
        return gap / 2.0 ** (self.level + self.times_split)

    def split(self, node: int, round_number: int) -> Split:
        """Cut a node at the midpoint of its centroids, normal to their difference, which must not be zero.

        The paper's offset is <A, (L+R)/2> with A not normalised; the midpoint needs the unit normal.
        """
        left_centroid, right_centroid = self.centroids()[node]
        gap = left_centroid - right_centroid
        unit = gap / np.linalg.norm(gap)
        self.normal = np.concatenate([self.normal, unit[None]])
        self.offset = np.append(self.offset, unit @ (left_centroid + right_centroid) / 2)
        self.n_cuts += 1
        self.times_split[node] += 1
        children = Split(node, self._add(node, LEFT, round_number), self._add(node, RIGHT, round_number))
        self._require()
        self._freeze()
        return children

    def seed_centroids(self, node: int, left: FloatArray, right: FloatArray) -> None:
        """Start a node's 2-means from two given points (m,), each with the count of one sample."""
        self.centroid_count[node] = 1
        self.centroid_sum[node] = left, right
        self._freeze()

    def leaves(self) -> BoolArray:
        """Which nodes were never split: (N,)."""
        unsplit: BoolArray = self.times_split == 0
        return unsplit

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        return {name: getattr(self, name) for name in (*self.NODE_ARRAYS, *self.CUT_ARRAYS)}

    def load(self, arrays: Arrays) -> None:
        """Take over a state, its names prefixed by tree_; InvalidSnapshot if it is not a tree."""
        parent = take(arrays, "tree_parent", np.int64, (-1,))
        offset = take(arrays, "tree_offset", np.float64, (-1,))
        n, k, m = len(parent), len(offset), self.n_features
        shapes = {"centroid_count": (n, 2), "centroid_sum": (n, 2, m), "offset": (k,), "normal": (k, m)}
        for name in (*self.NODE_ARRAYS, *self.CUT_ARRAYS):
            shape = shapes.get(name, (n,))
            setattr(self, name, take(arrays, f"tree_{name}", np.float64 if name in shapes else np.int64, shape))
        self.n_nodes, self.n_cuts = n, k
        self._check_links()
        self._require()
        self._freeze()

    def _check_links(self) -> None:
        nodes = np.arange(1, self.n_nodes)
        parent, cut, side = self.parent[1:], self.cut[1:], self.side[1:]
        nested = self.n_nodes == 1 + 2 * self.n_cuts and (parent >= 0).all() and (parent < nodes).all()
        paired = nested and (parent[::2] == parent[1::2]).all() and (cut == (nodes - 1) // 2).all()
        if not (
            paired
            and self.parent[0] == self.cut[0] == -1
            and self.level[0] == self.side[0] == 0
            and (side == (nodes - 1) % 2).all()
        ):
            raise InvalidSnapshot("its nodes are not a tree")
        times_split = np.bincount(parent[::2], minlength=self.n_nodes)
        if (self.level[1:] != self.level[parent] + 1).any() or (self.times_split != times_split).any():
            raise InvalidSnapshot("the levels of its nodes are not those of a tree")
        broken = (self.centroid_count < 1).any() or (np.abs(self.centroid_sum) > _LARGEST_SUM).any()
        if broken or not self.normal.any(1).all():
            raise InvalidSnapshot("it has a centroid of nothing or a hyperplane without direction")

    def _add(self, parent: int, side: int, round_number: int) -> int:
        node, self.n_nodes = self.n_nodes, self.n_nodes + 1
        for name in self.NODE_ARRAYS:
            setattr(self, name, grown(getattr(self, name), self.n_nodes))
        self.parent[node], self.level[node] = parent, self.level[parent] + 1
        self.born[node], self.cut[node], self.side[node] = round_number, self.n_cuts - 1, side
        self.centroid_count[node] = 1
        return node

    def _require(self) -> None:
        """(K, N): +1 or -1 where a node needs that side of a hyperplane, 0 where it does not care."""
        needed = np.zeros((self.n_nodes, self.n_cuts))
        for node in range(1, self.n_nodes):
            needed[node] = needed[self.parent[node]]
            needed[node, self.cut[node]] = 1.0 if self.side[node] == LEFT else -1.0
        self._required = np.ascontiguousarray(needed.T)

    def _freeze(self) -> None:
        """One matrix (m, K + N) gives both the sides of all hyperplanes and the nearer centroids."""
        centers = self.centroids()
        gaps = centers[:, LEFT] - centers[:, RIGHT]
        self._columns = np.ascontiguousarray(np.concatenate([self.normal, gaps]).T)
        squares = (centers * centers).sum(2)
        self._gap_offset = 0.5 * (squares[:, LEFT] - squares[:, RIGHT])
