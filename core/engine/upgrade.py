"""Snapshots of older versions, as the present one has them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.config import DetectorConfig
from core.decision.rule import DecisionRule
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take
from core.threshold.ordinary_scores import OrdinaryScores
from core.threshold.recent_scores import check_ring


def upgraded(arrays: Arrays, config: DetectorConfig) -> dict[str, NDArray[Any]]:
    """The arrays of version 2 or 3 as those of version 4.

    The scores that the threshold remembered are taken for ordinary ones, labels stay, and no incident is open.
    """
    if "location" not in arrays:
        return dict(arrays)
    rule = DecisionRule(config, 0.0)
    kept = dict(arrays)
    if config.threshold in ("weighted", "hindsight"):
        ring = take(arrays, "threshold_recent", np.float64, (-1,))
        _, oldest, n_labels = take(arrays, "threshold_progress", np.int64, (3,)).tolist()
        check_ring(ring, oldest)
        if not np.isfinite(ring).all():
            raise InvalidSnapshot("its recent scores are not finite")
        rule.ordinary = OrdinaryScores.of(np.roll(ring, -oldest))
        del kept["threshold_recent"], kept["threshold_progress"]
        kept["threshold_clock"] = np.array([n_labels])
    return rule.state() | kept
