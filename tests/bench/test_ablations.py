"""The changes that docs/method.md puts figures to can still be made, and change something."""

from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pytest

from bench.paper.ablations import DEVIATIONS, SETTINGS, measured
from bench.paper.streams import three_gaussians

NEEDS_MORE_DATA = {
    "round_growth 0 (every sample)",
    "max_nodes 31",
    "max_nodes 7",
    "no variance floor",
    "samples not drawn in",
    "paper profile, beta 3.5",
}


def losses(config: dict, patches: list) -> float:
    X, anomalous = three_gaussians(0, 150)
    with ExitStack() as stack:
        for place, attribute, value in patches:
            stack.enter_context(patch.object(place, attribute, value))
        return measured([(X, anomalous)], "exp. 1", config)["exp. 1 loss"]


@pytest.mark.parametrize("variants", [DEVIATIONS, SETTINGS])
def test_each_change_is_felt(variants: list) -> None:
    (_, config, patches), *changes = variants
    unchanged = losses(config, patches)
    felt = {name: losses(changed, patched) for name, changed, patched in changes}
    assert np.isfinite(list(felt.values())).all()
    assert {name for name, loss in felt.items() if loss == unchanged} <= NEEDS_MORE_DATA
