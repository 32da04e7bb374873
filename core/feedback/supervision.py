"""Supervision: a second density, of labelled normals, whose score counts as much as it has helped so far."""

from dataclasses import replace
from functools import cached_property
from math import exp
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray
from core.config import DetectorConfig
from core.density.labelled import LabelledSamples
from core.density.model import DensityModel
from core.density.round import Batch
from core.errors import InvalidSnapshot
from core.mixture.learned import LearnedSample
from core.snapshot import Arrays, take
from core.threshold.recent_scores import RecentScores, check_ring

START_ODDS: Final = 0.3
RATE: Final = 3.0
"""The second opinion starts at these odds; a known anomaly multiplies them by exp(RATE times its gain). Chosen
by hand."""
FEW: Final = 20.0
"""Labelled normals, beside two for each feature, at which both models count alike. Chosen by hand."""
MOST: Final = 30.0
"""Bound of the exponent, far from overflow."""


class Supervision:
    """Scores by two models, eq. (35): one of all samples, one of labelled normals alone. The paper has no such model.

    The second opinion is the mean of both models' scores; that of the normals has the weight n / (n + 2 m + FEW) after
    n labelled normals. Exponential weights say how much the second opinion counts: it gains when known anomalies would
    have ranked higher by it. The log-loss of normals would not do, since it does not see the density that the first
    model gives to anomalies. A weighted mean of scores is the score of a geometric mean of densities, which integrates
    to one at most.

    needed says whether labels have more to say: not if only labelled normals are learned, nor under the profile paper.
    """

    def __init__(self, config: DetectorConfig, everything: DensityModel) -> None:
        self._everything = everything
        self.needed = config.learn_from != "labelled_normal" and config.profile != "paper"
        self._few = 2.0 * config.n_features + FEW
        self.labelled = LabelledSamples(config.n_features)
        self._config = config
        self._first, self._second = RecentScores(), RecentScores()
        if self.needed:
            everything.weigh_normality(self.labelled)

    @cached_property
    def normals(self) -> DensityModel:
        """The second model, made when it is first needed: most streams never see a label."""
        normals = DensityModel(_of_normals(self._config))
        normals.nodes.prior.mean[0] = self._everything.nodes.prior.mean[0]
        normals.nodes.touch(0)
        return normals

    @property
    def active(self) -> bool:
        """Whether the second model exists and has learned something."""
        return "normals" in vars(self) and self.normals.n_learned > 0

    @property
    def newest_time(self) -> float:
        """The newest moment or timestamp that the second model knows; -inf without one."""
        return self.normals.newest_time if "normals" in vars(self) else -np.inf

    def combine(self, batch: Batch) -> tuple[FloatArray, FloatArray]:
        """Combine both models: log densities (n,) of the scaled space, and gains (n,) from -1 to 1.

        A gain is by how much the second opinion ranks a sample higher among the recent scores, as a share of them.
        """
        log_p = self._everything.log_p(batch.log_density)
        if not self.active:
            return log_p, np.zeros(len(log_p))
        first = -log_p
        second = self._opinion(first, batch.Z)
        gain = self._second.ranks(second) - self._first.ranks(first)
        return -self._mixed(first, second), gain

    def log_density(self, Z: FloatArray) -> FloatArray:
        """Give the combined log densities (n,) of scaled samples (n, m). Pure."""
        first = -self._everything.log_density(Z)
        return -(self._mixed(first, self._opinion(first, Z)) if self.active else first)

    def models(self) -> list[tuple[float, DensityModel]]:
        """The models, each with the weight of its score; the weights sum to one."""
        if not self.active:
            return [(1.0, self._everything)]
        normals = self._followed() * (1 - self._trust_in_all())
        return [(1.0 - normals, self._everything), (normals, self.normals)]

    def label(self, seq: int, label: int, gain: float, x: FloatArray) -> None:
        """Learn that a sample, x (m,) as it is learned, is anomalous (+1), normal (-1) or not labelled any more (0)."""
        self.labelled.put(seq, label, gain, x)
        self._everything.weigh_normality(self.labelled)

    def learn(self, sample: LearnedSample) -> int:
        """Learn a labelled normal in the second model, with the values of the first; its ordinal there."""
        batch = self.normals.evaluate(sample.x[None], np.array([sample.moment]))
        batch.learned, batch.spread = sample.x[None], sample.spread[None]
        ordinal = self.normals.next_ordinal
        self.normals.learn(batch)
        return ordinal

    def _opinion(self, first: FloatArray, Z: FloatArray) -> FloatArray:
        trust = self._trust_in_all()
        return trust * first - (1 - trust) * self.normals.log_density(Z)

    def _mixed(self, first: FloatArray, second: FloatArray) -> FloatArray:
        followed = self._followed()
        return (1 - followed) * first + followed * second

    def _trust_in_all(self) -> float:
        return self._few / (self.normals.n_learned + self._few)

    def _followed(self) -> float:
        odds = START_ODDS * exp(min(max(RATE * self.labelled.gained(), -MOST), MOST))
        return odds / (1 + odds)

    def state(self) -> dict[str, NDArray[Any]]:
        """Give the arrays of a snapshot, by name."""
        arrays = self.labelled.state()
        if "normals" not in vars(self):
            return arrays
        arrays |= {f"normals_{name}": array for name, array in self.normals.state().items()}
        for name, recent in (("first", self._first), ("second", self._second)):
            arrays |= {
                f"ranked_{name}": np.array(recent.ring, float),
                f"ranked_{name}_oldest": np.array([recent.oldest]),
            }
        return arrays

    def check(self, arrays: Arrays) -> None:
        """Raise InvalidSnapshot if no labels could have produced this state."""
        self.labelled.check(arrays)
        normals = _of_second(arrays)
        if not normals:
            return
        if not self.needed:
            raise InvalidSnapshot("it holds a second model, which its config leaves out")
        self.normals.check(normals)
        sizes = set()
        for name in ("first", "second"):
            ring = take(arrays, f"ranked_{name}", np.float64, (-1,))
            oldest = int(take(arrays, f"ranked_{name}_oldest", np.int64, (1,))[0])
            check_ring(ring, oldest)
            sizes.add((len(ring), oldest))
        if len(sizes) > 1:
            raise InvalidSnapshot("its two rankings are not of the same samples")

    def load(self, arrays: Arrays) -> None:
        """Go on from a state that check has passed."""
        self.labelled.load(arrays)
        if self.needed:
            self._everything.weigh_normality(self.labelled)
        if normals := _of_second(arrays):
            self.normals.load(normals)
            for name, recent in (("first", self._first), ("second", self._second)):
                recent.load(arrays[f"ranked_{name}"], int(arrays[f"ranked_{name}_oldest"][0]))


def _of_second(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """The arrays of the second model, by its own names; none without one."""
    return {name.removeprefix("normals_"): array for name, array in arrays.items() if name.startswith("normals_")}


def _of_normals(config: DetectorConfig) -> DetectorConfig:
    """The config of the second model: half the nodes, and the clock of the first."""
    return replace(
        config,
        learn_from="labelled_normal",
        max_nodes=max(1, config.max_nodes // 2),
        half_life_samples=None,
        half_life_seconds=config.half_life_seconds or config.half_life_samples,
    )
