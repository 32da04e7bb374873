"""Which nodes the samples of a round belong to, and by how much."""

from dataclasses import dataclass

from core.arrays import FloatArray
from core.tree.subspaces import SubspaceTree


@dataclass(slots=True)
class Shares:
    """How the n samples of a round divide among N nodes.

    own (N, n) is alpha_i f_i / p, which sums to one over the nodes; log_p (n,) is the mixture's log density.
    """

    own: FloatArray
    log_p: FloatArray

    def reaching(self, tree: SubspaceTree) -> FloatArray:
        """The share of each sample that a node and all nodes below it have together, (N, n): r_v of eq. (16)."""
        return summed_upwards(self.own, tree)


def summed_upwards(values: FloatArray, tree: SubspaceTree) -> FloatArray:
    """For each node the sum of the values (N, ...) of itself and of all nodes below it."""
    total = values.copy()
    rows = list(total)
    for node, left, right in tree.links_upwards:
        rows[node] += rows[left]
        rows[node] += rows[right]
    return total
