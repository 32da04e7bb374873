"""The tree of nested subspaces (Alg. 2): hyperplanes, and which node holds which sample. Flat arrays."""

from collections import defaultdict
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take

LEFT: Final = 0
RIGHT: Final = 1
SHORT: Final = 1e-140
"""Squares of shorter lengths lose digits, and those of 1e-170 are zero."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The two children of a node that hyperplane number cut makes: left where normal . z >= offset, right elsewhere."""

    cut: int
    node: int

    @property
    def left(self) -> int:
        """Number of the left child."""
        return 2 * self.cut + 1

    @property
    def right(self) -> int:
        """Number of the right child."""
        return 2 * self.cut + 2

    @property
    def children(self) -> IntArray:
        """Numbers of both children, left first."""
        return np.array([self.left, self.right])


class SubspaceTree:
    """N = 1 + 2 K nested subspaces, made by K hyperplanes; node 0, the root, is the whole space.

    Hyperplane k cuts node cut_node[k] into nodes 2 k + 1 (left) and 2 k + 2 (right). A node may be cut more than once;
    its earlier children stay. When a pair is removed, the next pair takes its numbers. Node j counts the samples in its
    subspace from ordinal since[j] on.

    level (N,) and times_split (N,) count cuts above a node and of it; leaf (N,) marks nodes that are not cut; parent
    (N,) is -1 for the root; ancestor (N, N) is true where node j is i or above it. links_upwards lists (node, left,
    right), children before parents.
    """

    def __init__(self, n_features: int) -> None:
        self.cut_node = np.zeros(0, np.int64)
        self.normal, self.offset = np.zeros((0, n_features)), np.zeros(0)
        self.since = np.zeros(1, np.int64)
        self.n_splits = 0  # since this object was made
        self.version = 0
        self._derive()

    @property
    def n_nodes(self) -> int:
        """N."""
        return 1 + 2 * len(self.cut_node)

    def membership(self, Z: FloatArray) -> BoolArray:
        """Which subspaces hold each sample (n, m): (n, N)."""
        above = distances(Z, self.normal) >= self.offset
        met = np.where(above, 1.0, -1.0) @ self._required
        held: BoolArray = met == self.level
        return held

    def leaf_of(self, held: BoolArray) -> IntArray:
        """The leaf (n,) of each sample, from the nodes held (n, N) that hold it; nodes must be cut once at most."""
        leaves = np.flatnonzero(self.leaf)
        leaf: IntArray = leaves[held[:, leaves].argmax(1)]
        return leaf

    def counting(self, z: FloatArray, ordinal: int) -> IntArray:
        """The nodes (k,) that counted the sample z (m,) with this ordinal."""
        return np.flatnonzero(self.membership(z[None])[0] & (self.since <= ordinal))

    def split(self, node: int, normal: FloatArray, offset: float, since: int, free: Pair | None = None) -> Pair:
        """Cut a node by a hyperplane: unit normal (m,), offset. The children count from ordinal since on.

        They take the numbers of the pair free, which was given up, or new ones.
        """
        cut = len(self.cut_node) if free is None else free.cut
        if free is None:
            self.cut_node, self.offset = np.append(self.cut_node, 0), np.append(self.offset, 0.0)
            self.normal = np.concatenate([self.normal, normal[None]])
            self.since = np.append(self.since, [0, 0])
        pair = Pair(cut, node)
        self.cut_node[cut], self.normal[cut], self.offset[cut] = node, normal, offset
        self.since[pair.children] = since
        self.n_splits += 1
        self._derive()
        return pair

    def lift(self, pair: Pair, child: int, since: int) -> None:
        """Move the subtree of one child into its parent's place, counting from ordinal since on; the pair is free then.

        The tree is consistent again after split has used the free pair.
        """
        self.cut_node[pair.cut] = -1
        self.cut_node[self.cut_node == child] = pair.node
        below = self.ancestor[:, child].copy()
        below[pair.node] = True
        self.since[below] = since

    def pairs(self) -> list[Pair]:
        """All pairs, by rising number."""
        return [Pair(cut, node) for cut, node in enumerate(self.cut_node.tolist())]

    def pair_of(self, child: int) -> Pair:
        """The pair of a node other than the root."""
        return Pair((child - 1) // 2, int(self.parent[child]))

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays of a snapshot, by name."""
        return {
            "tree_cut_node": self.cut_node,
            "tree_normal": self.normal,
            "tree_offset": self.offset,
            "tree_since": self.since,
        }

    def check(self, arrays: Arrays) -> IntArray:
        """How often each node of a state is cut, (N,). Raises InvalidSnapshot if the state is not a tree."""
        cut_node = take(arrays, "tree_cut_node", np.int64, (-1,))
        k = len(cut_node)
        normal = take(arrays, "tree_normal", np.float64, (k, self.normal.shape[1]))
        take(arrays, "tree_offset", np.float64, (k,))
        take(arrays, "tree_since", np.int64, (1 + 2 * k,))
        if ((cut_node < 0) | (cut_node > 2 * k)).any() or not are_directions(normal):
            raise InvalidSnapshot("its tree has a cut of a node that is not there, or without direction")
        if len(top_down(cut_node)) != 1 + 2 * k:
            raise InvalidSnapshot("its nodes are not a tree")
        return np.bincount(cut_node, minlength=1 + 2 * k)

    def load(self, arrays: Arrays) -> None:
        """Continue from a state that check has passed."""
        self.cut_node, self.normal = arrays["tree_cut_node"], arrays["tree_normal"]
        self.offset, self.since = arrays["tree_offset"], arrays["tree_since"]
        self._derive()

    def _derive(self) -> None:
        """Compute everything that follows from the cuts."""
        self.version += 1
        n, k = self.n_nodes, len(self.cut_node)
        self.parent: IntArray = np.concatenate([[-1], np.repeat(self.cut_node, 2)])
        self.times_split: IntArray = np.bincount(self.cut_node, minlength=n)
        self.leaf: BoolArray = self.times_split == 0
        self.level = np.zeros(n, np.int64)
        self.top_down = top_down(self.cut_node)
        required = np.zeros((n, k))
        self.ancestor = np.eye(n, dtype=bool)
        for node in self.top_down[1:].tolist():
            parent, cut = int(self.parent[node]), (node - 1) // 2
            required[node] = required[parent]
            required[node, cut] = 1.0 if node == 2 * cut + 1 else -1.0
            self.ancestor[node] |= self.ancestor[parent]
            self.level[node] = self.level[parent] + 1
        self._required = np.ascontiguousarray(required.T)
        cuts = sorted(range(k), key=lambda cut: self.level[self.cut_node[cut]])
        self.links_upwards = [(int(self.cut_node[cut]), 2 * cut + 1, 2 * cut + 2) for cut in reversed(cuts)]


def top_down(cut_node: IntArray) -> IntArray:
    """The root and all nodes that can be reached from it, parents before children."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for cut, node in enumerate(cut_node.tolist()):
        children[node] += [2 * cut + 1, 2 * cut + 2]
    order = [0]
    for node in order:
        order += children[node]
    return np.array(order)


def direction(v: FloatArray) -> tuple[FloatArray, float] | None:
    """The unit vector along v (m,), and v's length; None if v is zero.

    >>> direction(np.array([3e-170, 4e-170]))
    (array([0.6, 0.8]), 5e-170)
    """
    length = sqrt(v @ v)
    if length > SHORT:
        return v / length, length
    largest = float(np.abs(v).max())
    if largest == 0:
        return None
    part = v / largest
    length = sqrt(part @ part)
    return part / length, length * largest


def are_directions(normals: FloatArray) -> bool:
    """Whether all rows (K, m) are unit vectors, up to rounding."""
    return bool((np.abs((normals * normals).sum(1) - 1.0) < 1e-6).all())


def distances(Z: FloatArray, normals: FloatArray) -> FloatArray:
    """normal . z for every sample (n, m) and normal (K, m): (n, K).

    Summed feature by feature: a BLAS product rounds by its shape, and a sample must always fall on the same side, in
    any batch, now and when its label comes.
    """
    total = np.zeros((len(Z), len(normals)))
    for column, component in zip(Z.T, normals.T, strict=True):
        total += column[:, None] * component
    return total


def distances_each(Z: FloatArray, normals: FloatArray) -> FloatArray:
    """normal . z for every sample (n, m) and its own normal (n, m): (n,), bit for bit what distances gives."""
    total = np.zeros(len(Z))
    for column, component in zip(Z.T, normals.T, strict=True):
        total += column * component
    return total
