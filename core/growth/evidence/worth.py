"""What the nodes of a full tree are worth."""

from math import exp
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import grown
from core.errors import InvalidSnapshot
from core.mixture import Mixture
from core.mixture.log_sum import LEAST_WEIGHT
from core.mixture.shares import Shares, summed_upwards
from core.mixture.tree_odds import MOST_EVIDENCE, evidence_for_keeping
from core.snapshot import Arrays, take
from core.tree.subspaces import Pair, SubspaceTree

MEMORY: Final = 1000.0
"""Samples that the means remember. Chosen by hand."""
SEEN_A_ROUND: Final = 64
"""The first samples of a round, which speak for all. Chosen by hand."""


class Worth:
    """Running means over about MEMORY samples.

    used (N,) is the share of a sample that reaches each node, 0 to 1. saved (N,) is what its children save against the
    node alone, in nats a sample.
    """

    def __init__(self) -> None:
        self.n_seen = 0
        self.used, self.saved = np.ones(1), np.zeros(1)

    @property
    def known(self) -> bool:
        """Whether it has seen enough samples to judge."""
        return self.n_seen >= MEMORY

    def learn(self, shares: Shares, mixture: Mixture, tree: SubspaceTree) -> None:
        """See a round of samples, before the weights move by them."""
        own, inner = np.ascontiguousarray(shares.own[:, :SEEN_A_ROUND]), np.flatnonzero(~tree.leaf)
        reached = summed_upwards(own, tree)
        below = summed_upwards(mixture.weights[:, None], tree)[:, 0] - mixture.weights
        odds = mixture.log_weights - np.log(np.maximum(below, LEAST_WEIGHT))
        said = odds[inner, None] - evidence_for_keeping(own[inner], reached[inner])
        np.minimum(np.maximum(said, -MOST_EVIDENCE, out=said), MOST_EVIDENCE, out=said)
        n = len(shares.log_p)
        decay = exp(-n / MEMORY)
        saved = np.zeros(tree.n_nodes)
        saved[inner] = (reached[inner] * said).mean(1)
        self.n_seen += n
        self.used = decay * self.used + (1 - decay) * reached.mean(1)
        self.saved = decay * self.saved + (1 - decay) * saved

    def split(self, pair: Pair, n_nodes: int, left_share: float, promise: float) -> None:
        """Add two new children, with left_share of their parent's samples on the left.

        They promise to save so many nats for each sample that reaches them.
        """
        self.used, self.saved = grown(self.used, n_nodes), grown(self.saved, n_nodes)
        self.used[pair.children] = self.used[pair.node] * np.array([left_share, 1 - left_share])
        self.saved[pair.children] = 0
        self.saved[pair.node] = promise * self.used[pair.node]

    def lift(self, pair: Pair, child: int) -> None:
        """The child takes its parent's place."""
        self.saved[pair.node] = self.saved[child]

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays of a snapshot, by name."""
        return {"worth_used": self.used, "worth_saved": self.saved, "worth_seen": np.array([self.n_seen])}

    def check(self, arrays: Arrays, n_nodes: int) -> None:
        """Raise InvalidSnapshot if a state does not fit a tree of so many nodes."""
        for name in ("used", "saved"):
            take(arrays, f"worth_{name}", np.float64, (n_nodes,))
        if not 0 <= take(arrays, "worth_seen", np.int64, (1,))[0] < 2**53:
            raise InvalidSnapshot("its count of samples that tell what its nodes are worth is out of range")

    def load(self, arrays: Arrays) -> None:
        """Continue from a state that check has passed."""
        self.used, self.saved = arrays["worth_used"], arrays["worth_saved"]
        self.n_seen = int(arrays["worth_seen"][0])
