"""The sequential 2-means of every node (Alg. 2), which the scheduled splits cut by."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray, grown, product_by_blocks
from core.errors import InvalidSnapshot
from core.families.statistics import LAST
from core.scaling import LIMIT
from core.snapshot import Arrays, take
from core.tree.subspaces import LEFT, RIGHT, SubspaceTree, direction

LEAST_COUNT: Final = 1e-100
"""A centroid whose samples have faded to less stays where it is, as if it had this count."""


class TwoMeans:
    """Two centroids a node, (N, 2, m): sum over count, counts starting at 1 and sums at 0; ties go left."""

    def __init__(self, n_features: int) -> None:
        self._count, self._sum = np.ones((1, 2)), np.zeros((1, 2, n_features))
        self._freeze()

    def centroids(self) -> FloatArray:
        """The centroids, (N, 2, m)."""
        centers: FloatArray = self._sum / self._count[:, :, None]
        return centers

    def nearer_left(self, Z: FloatArray) -> BoolArray:
        """For every node, whether its left centroid is the nearer one: (n, N)."""
        left: BoolArray = product_by_blocks(Z, self._gap_columns) >= self._gap_offset
        return left

    def move(self, held: BoolArray, left: BoolArray, Z: FloatArray, weight: FloatArray) -> None:
        """One step of every sequential 2-means for each sample: the nearer centroid of each node that holds it."""
        for side, taken in ((LEFT, held & left), (RIGHT, held & ~left)):
            weights = taken * weight[:, None]
            self._count[:, side] += weights.sum(0)
            self._sum[:, side] += weights.T @ Z
        self._freeze()

    def change(self, nodes: IntArray, left: BoolArray, z: FloatArray, weight: float) -> None:
        """Let the sides of these nodes that counted a sample (m,) count it so much more, or less."""
        at = nodes, np.where(left, LEFT, RIGHT)
        count, total = self._count[at] + weight, self._sum[at] + weight * z
        empty = count < max(LEAST_COUNT, -LAST * weight)  # all that counted has faded but for this sample
        count[empty], total[empty] = LEAST_COUNT, 0.0
        most = LIMIT * count[:, None]
        self._count[at], self._sum[at] = count, np.clip(total, -most, most)
        self._freeze()

    def most_separated(self, tree: SubspaceTree) -> int | None:
        """The node with the largest ||c_L - c_R|| / 2^(level + times split), or None if no two centroids differ.

        The paper's exponent is the level alone; then the root wins for ever. Its own figure needs a node's splits to
        count.
        """
        centers = self.centroids()
        gap = np.linalg.norm(centers[:, LEFT] - centers[:, RIGHT], axis=1)
        ratio = gap / 2.0 ** (tree.level + tree.times_split)
        node = int(ratio.argmax())
        return node if ratio[node] > 0 else None

    def hyperplane(self, node: int) -> tuple[FloatArray, float]:
        """Unit normal (m,) and offset of the plane halfway between a node's centroids, which must differ.

        The paper's offset is <A, (L+R)/2> with A not normalised; the midpoint needs the unit normal.
        """
        left, right = self.centroids()[node]
        along = direction(left - right)
        assert along is not None
        return along[0], float(along[0] @ (left + right) / 2)

    def add_pair(self) -> None:
        """Start the 2-means of two more nodes."""
        n = len(self._count)
        self._count, self._sum = grown(self._count, n + 2), grown(self._sum, n + 2)
        self._count[n:] = 1
        self._freeze()

    def fade(self, factor: float) -> None:
        """Let what was taken so far count that much less; centroids stay."""
        faded = self._count * factor
        factors = np.where(faded < LEAST_COUNT, LEAST_COUNT / self._count, factor)
        self._count = np.maximum(faded, LEAST_COUNT)
        self._sum *= factors[:, :, None]

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        return {"centroid_count": self._count, "centroid_sum": self._sum}

    def check(self, arrays: Arrays, n_nodes: int) -> None:
        """InvalidSnapshot if a state does not fit a tree of so many nodes."""
        count = take(arrays, "centroid_count", np.float64, (n_nodes, 2))
        total = take(arrays, "centroid_sum", np.float64, (n_nodes, 2, self._sum.shape[2]))
        if (count < LEAST_COUNT).any():
            raise InvalidSnapshot("it has a centroid of nothing")
        if (np.abs(total) > 2 * LIMIT * count[:, :, None]).any():
            raise InvalidSnapshot("it has a centroid where no sample can be")

    def load(self, arrays: Arrays) -> None:
        """Take over a state."""
        self._count, self._sum = arrays["centroid_count"], arrays["centroid_sum"]
        self._freeze()

    def _freeze(self) -> None:
        centers = self.centroids()
        self._gap_columns = np.ascontiguousarray((centers[:, LEFT] - centers[:, RIGHT]).T)
        squares = (centers * centers).sum(2)
        self._gap_offset = 0.5 * (squares[:, LEFT] - squares[:, RIGHT])
