"""Snapshots of older versions, as the present one has them."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.config import DetectorConfig
from core.decision.rule import DecisionRule
from core.density.spread import RecentSpread
from core.density.unscaled import Unscaled
from core.errors import InvalidSnapshot
from core.feedback.background import Background
from core.feedback.labelled_samples import CAPACITY
from core.mixture.nodes import Nodes
from core.scaling import Scaling, check_scaling
from core.snapshot import Arrays, take
from core.threshold.ordinary_scores import OrdinaryScores
from core.threshold.recent_scores import check_ring
from core.threshold.sample_scores import NO_SAMPLE, SampleScores

SCALES_STAYED: Final = 4
SECOND_MODEL: Final = 3
"""The last versions in which scales did not follow the samples, and in which labels made a second model."""


def upgraded(arrays: Arrays, config: DetectorConfig, version: int) -> dict[str, NDArray[Any]]:
    """The arrays of an older version as those of the present one."""
    arrays = dict(arrays)
    if version <= SECOND_MODEL:
        arrays = _with_decisions(arrays, config)
    elif "location" in arrays:
        arrays = _with_seqs(arrays)
    return _with_scales(arrays, config) if version <= SCALES_STAYED else arrays


def _with_seqs(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """All arrays of a version whose ordinary scores did not know their samples: no label will set them aside."""
    for name, n_before in (("ordinary", 0), ("incident", 1), ("settling", 1)):
        n = len(take(arrays, f"{name}_scores", np.float64, (-1,)))
        arrays[f"{name}_seqs"] = np.full(max(n - n_before, 0), NO_SAMPLE)
    return arrays


def _with_scales(arrays: dict[str, NDArray[Any]], config: DetectorConfig) -> dict[str, NDArray[Any]]:
    """All arrays, with a scaling that fits all features so far."""
    arrays |= Nodes(config).spreads()
    if config.follows_spread:
        arrays |= RecentSpread(config.kinds).state()
    if "location" in arrays:
        location, scale = (take(arrays, name, np.float64, (config.n_features,)) for name in ("location", "scale"))
        check_scaling(location, scale, config)
        volume = Scaling(location, scale, config.kinds).log_volume
        arrays |= {"scale_volume": np.array([volume]), "level_base": np.zeros(1)}
        arrays |= Unscaled(config.kinds, config.expected_anomaly_rate).state()
    return arrays


def _with_decisions(arrays: Arrays, config: DetectorConfig) -> dict[str, NDArray[Any]]:
    """All that stays from a version with a second model of labelled normals, which goes.

    The scores that the threshold remembered are taken for ordinary ones, labels stay, no incident is open, and the
    background begins.
    """
    kept = _with_labelled_samples(arrays, config)
    if "location" not in arrays:
        return kept
    rule = DecisionRule(config, 0.0)
    if config.threshold in ("weighted", "hindsight"):
        ring = take(arrays, "threshold_recent", np.float64, (-1,))
        _, oldest, n_labels = take(arrays, "threshold_progress", np.int64, (3,)).tolist()
        check_ring(ring, oldest)
        if not np.isfinite(ring).all():
            raise InvalidSnapshot("its recent scores are not finite")
        rule.ordinary = OrdinaryScores.of(SampleScores.of(np.roll(ring, -oldest)))
        del kept["threshold_recent"], kept["threshold_progress"]
        kept["threshold_clock"] = np.array([n_labels])
    return rule.state() | kept


def _with_labelled_samples(arrays: Arrays, config: DetectorConfig) -> dict[str, NDArray[Any]]:
    """All that stays as it is, and the last labelled samples; they were kept together, and are now by their label."""
    gone = ("normals_", "ranked_", "labelled_")
    kept = {name: array for name, array in arrays.items() if not name.startswith(gone)}
    seq = take(arrays, "labelled_seq", np.int64, (-1,))
    label = take(arrays, "labelled_label", np.int64, (len(seq),))
    x = take(arrays, "labelled_x", np.float64, (len(seq), config.n_features))
    of_either = [np.flatnonzero(label == kind)[-CAPACITY:] for kind in (-1, 1)]
    last = np.concatenate(of_either)
    samples = {"labelled_seq": seq[last], "labelled_label": label[last], "labelled_x": x[last]}
    return kept | Background(config.n_features).state() | samples
