"""The sequential 2-means of every node (Alg. 2), whose centroids say where to cut it."""

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
"""A centroid whose count fades below this stays where it is, with this count."""


class TwoMeans:
    """Two centroids for each node, (N, 2, m), eq. (7): sums over counts, which start at 0 and 1. Ties go left.

    They start at the origin, as in the paper, so samples must be scaled and lie near it.
    """

    def __init__(self, n_features: int) -> None:
        self._count, self._sum = np.ones((1, 2)), np.zeros((1, 2, n_features))
        self._freeze()

    def centroids(self) -> FloatArray:
        """The centroids (N, 2, m), left before right."""
        centers: FloatArray = self._sum / self._count[:, :, None]
        return centers

    def nearer_left(self, Z: FloatArray) -> BoolArray:
        """Whether the left centroid of each node is at least as near to each sample (n, m) as the right one: (n, N)."""
        left: BoolArray = product_by_blocks(Z, self._gap_columns) >= self._gap_offset
        return left

    def move(self, held: BoolArray, left: BoolArray, Z: FloatArray, weight: FloatArray) -> None:
        """Move the centroids by samples (n, m), eq. (7): in each node held (n, N) that holds one, the side left (n, N).

        weight (n,) is what each sample counts.
        """
        for side, taken in ((LEFT, held & left), (RIGHT, held & ~left)):
            weights = taken * weight[:, None]
            self._count[:, side] += weights.sum(0)
            self._sum[:, side] += weights.T @ Z
        self._freeze()

    def change(self, nodes: IntArray, left: BoolArray, z: FloatArray, weight: float) -> None:
        """Add weight, or subtract it if below 0, for a sample z (m,) on the sides left (k,) of these nodes (k,)."""
        at = nodes, np.where(left, LEFT, RIGHT)
        count, total = self._count[at] + weight, self._sum[at] + weight * z
        empty = count < max(LEAST_COUNT, -LAST * weight)  # all that counted has faded but for this sample
        count[empty], total[empty] = LEAST_COUNT, 0.0
        most = LIMIT * count[:, None]
        self._count[at], self._sum[at] = count, np.clip(total, -most, most)
        self._freeze()

    def most_separated(self, tree: SubspaceTree) -> int | None:
        """The node of the largest ratio, eq. (8), or None if no two centroids differ.

        Deviation: the paper's exponent is the level alone. Then the root wins for ever, and the tree of the paper's own
        figure cannot arise.
        """
        centers = self.centroids()
        gap = np.linalg.norm(centers[:, LEFT] - centers[:, RIGHT], axis=1)
        ratio = gap / 2.0 ** (tree.level + tree.times_split)
        node = int(ratio.argmax())
        return node if ratio[node] > 0 else None

    def hyperplane(self, node: int) -> tuple[FloatArray, float]:
        """The unit normal (m,) and offset of the hyperplane of eq. (9); the node's centroids must differ.

        Deviation: the paper's offset has a normal that is not of unit length, and misses the midpoint.
        """
        left, right = self.centroids()[node]
        along = direction(left - right)
        assert along is not None
        return along[0], float(along[0] @ (left + right) / 2)

    def add_pair(self) -> None:
        """Add two nodes."""
        n = len(self._count)
        self._count, self._sum = grown(self._count, n + 2), grown(self._sum, n + 2)
        self._count[n:] = 1
        self._freeze()

    def fade(self, factor: float) -> None:
        """Multiply all counts and sums by a factor, 0 to 1; the centroids stay."""
        faded = self._count * factor
        factors = np.where(faded < LEAST_COUNT, LEAST_COUNT / self._count, factor)
        self._count = np.maximum(faded, LEAST_COUNT)
        self._sum *= factors[:, :, None]

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays of a snapshot, by name."""
        return {"centroid_count": self._count, "centroid_sum": self._sum}

    def check(self, arrays: Arrays, n_nodes: int) -> None:
        """Raise InvalidSnapshot if a state does not fit a tree of so many nodes."""
        count = take(arrays, "centroid_count", np.float64, (n_nodes, 2))
        total = take(arrays, "centroid_sum", np.float64, (n_nodes, 2, self._sum.shape[2]))
        if (count < LEAST_COUNT).any():
            raise InvalidSnapshot("it has a centroid of nothing")
        if (np.abs(total) > 2 * LIMIT * count[:, :, None]).any():
            raise InvalidSnapshot("it has a centroid where no sample can be")

    def load(self, arrays: Arrays) -> None:
        """Continue from a state that check has passed."""
        self._count, self._sum = arrays["centroid_count"], arrays["centroid_sum"]
        self._freeze()

    def _freeze(self) -> None:
        centers = self.centroids()
        self._gap_columns = np.ascontiguousarray((centers[:, LEFT] - centers[:, RIGHT]).T)
        squares = (centers * centers).sum(2)
        self._gap_offset = 0.5 * (squares[:, LEFT] - squares[:, RIGHT])
