"""Mixtures over small trees."""

import numpy as np
from hypothesis import strategies as st

from core.mixture import MIXTURES, Mixture
from core.tree.subspaces import Pair, SubspaceTree

NORMAL = np.ones(1)
DENSITIES = st.lists(
    st.lists(st.floats(-1e200, 700) | st.floats(-5, 5), min_size=3, max_size=3), min_size=1, max_size=8
).map(np.array)


def cut(mixture: Mixture, node: int, kept: float = 0.5, left_share: float = 0.4) -> Pair:
    """Cut a node of the mixture's tree."""
    pair = mixture.tree.split(node, NORMAL, float(mixture.tree.n_nodes), since=1)
    mixture.split(pair, kept, left_share)
    return pair


def three(name: str) -> Mixture:
    mixture = MIXTURES[name](SubspaceTree(1))
    cut(mixture, 0)
    return mixture


def learn(mixture: Mixture, log_density: np.ndarray) -> None:
    mixture.learn(mixture.shares(np.asarray(log_density)))
