"""What nodes are worth."""

import numpy as np
import pytest

from core.growth.evidence.worth import Worth
from core.mixture import MIXTURES
from core.tree.subspaces import SubspaceTree


def test_worth_is_the_share_that_reaches_and_the_nats_that_children_save():
    tree = SubspaceTree(1)
    mixture, worth = MIXTURES["tree"](tree), Worth()
    pair = tree.split(0, np.ones(1), 0.0, 1)
    mixture.split(pair, 0.5, 0.3)
    worth.split(pair, 3, 0.3, 0.25)
    assert worth.used.tolist() == pytest.approx([1.0, 0.3, 0.7])
    assert worth.saved.tolist() == pytest.approx([0.25, 0.0, 0.0])
    log_density = np.tile([-3.0, -1.0, -9.0], (100, 1))
    below = np.log(np.exp([-1.0, -9.0]) @ mixture.weights[1:] / mixture.weights[1:].sum())
    for _ in range(100):
        worth.learn(mixture.shares(log_density), mixture, tree)
    assert worth.saved[0] == pytest.approx(below + 3.0, rel=1e-3)
    assert worth.saved[1:].tolist() == [0.0, 0.0]
    assert worth.used[0] == pytest.approx(1)
    assert worth.used[1] > 0.5 > worth.used[2]
