"""Which nodes the samples of a round belong to, and by how much."""

from dataclasses import dataclass

from core.arrays import FloatArray
from core.tree.subspaces import SubspaceTree


@dataclass(slots=True)
class Shares:
    """Whose the n samples of a round are: own (N, n) is alpha_i f_i / p, and log_p (n,)."""

    own: FloatArray
    log_p: FloatArray

    def reaching(self, tree: SubspaceTree) -> FloatArray:
        """The share of each sample that is a node's or of what is below it, (N, n)."""
        return summed_upwards(self.own, tree)


def summed_upwards(values: FloatArray, tree: SubspaceTree) -> FloatArray:
    """For each node the sum of values (N, ...) of itself and all that is below it."""
    total = values.copy()
    rows = list(total)
    for node, left, right in tree.links_upwards:
        rows[node] += rows[left]
        rows[node] += rows[right]
    return total
