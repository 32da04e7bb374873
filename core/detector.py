"""Detector: the face of core. It holds a state, and lets samples and labels take their paths over it."""

from collections.abc import Sequence
from typing import Any

from core.arrays import FloatArray
from core.config import DetectorConfig
from core.engine import label_path, sample_path
from core.engine.state import DetectorState
from core.errors import InvalidObservation
from core.feedback.costs import Costs
from core.records import Records
from core.results import Feedback, Observation
from core.views.description import DensityGrid, describe
from core.views.explanation import Explanation


class Detector:
    """Scores samples, decides, learns them, and learns from labels that come later.

    Deterministic: the same config, samples and labels in the same order give the same scores and the same to_bytes(),
    however the samples were cut into batches. A sample is always scored before it is learned.

    >>> import numpy as np
    >>> detector = Detector(DetectorConfig(n_features=2))
    >>> out = detector.observe(np.random.default_rng(0).normal(size=(500, 2)))
    >>> bool(out.ready[-1]), out.score.shape, bool(detector.observe([[9.0, -9.0]]).is_anomaly[0])
    (True, (500,), True)
    """

    def __init__(self, config: DetectorConfig, *, first_seq: int = 1) -> None:
        self.state = DetectorState(config, first_seq=first_seq)

    @property
    def config(self) -> DetectorConfig:
        """The knobs, as they were given and resolved."""
        return self.state.config

    @property
    def first_seq(self) -> int:
        """The number of the first sample."""
        return self.state.first_seq

    @property
    def next_seq(self) -> int:
        """The number that the next sample gets."""
        return self.state.next_seq

    @property
    def n_seen(self) -> int:
        """Samples observed so far."""
        return self.next_seq - self.first_seq

    @property
    def ready(self) -> bool:
        """Whether the warm-up is over, so that the next sample gets a score."""
        return self.state.ready

    @property
    def samples_needed(self) -> int:
        """Samples that the warm-up still needs; 0 once ready."""
        return self.state.samples_needed

    @property
    def n_flagged(self) -> int:
        """Samples found anomalous so far."""
        return self.state.costs.n_flagged

    @property
    def n_nodes(self) -> int:
        """Nodes of the tree."""
        return self.state.density.tree.n_nodes

    @property
    def n_levels(self) -> int:
        """Levels of the tree; 1 while the root is all there is."""
        return int(self.state.density.tree.level.max()) + 1

    @property
    def n_splits(self) -> int:
        """Nodes cut in two since this object was made; a snapshot does not hold it."""
        return self.state.density.tree.n_splits

    @property
    def threshold(self) -> float:
        """The threshold that the next score will meet, in nats; NaN before ready."""
        return self.state.next_threshold

    @property
    def newest_time(self) -> float | None:
        """The newest timestamp by which what is learned fades; None before any, or without a half-life in seconds."""
        return self.state.newest_time

    def observe(self, X: Any, times: Any = None, *, explain: bool = False) -> Observation:
        """Score samples X (n, m) one after the other, decide, and learn each after it was scored; NaN is missing.

        times (n,) are their timestamps in seconds, needed if what is learned has a half-life in seconds. With explain
        the flagged samples are explained; the state is the same without. Raises InvalidObservation, and changes
        nothing, if X has another shape, an infinity, or a row with nothing known, or a time is not a finite number.
        """
        return sample_path.observe(self.state, X, times, explain=explain)

    def feedback(self, records: Records, labels: Sequence[bool | None]) -> Feedback:
        """Learn true labels, one a record: True anomalous, False normal, None withdraws what was said before.

        The label moves the threshold by the score and decision of that time, and the sample leaves or joins the density
        as learn_from says. Raises InvalidObservation, and changes nothing, if a label is of another type, or one sample
        gets two.
        """
        return label_path.feedback(self.state, records, labels)

    def score(self, X: Any) -> FloatArray:
        """-log p of samples X (n, m), in nats of the user's units, high = anomalous; nothing is learned.

        Raises InvalidObservation as observe does, and NotReady during the warm-up.
        """
        return sample_path.score(self.state, X)

    def log_density(self, X: Any) -> FloatArray:
        """log p of samples X (n, m): -score."""
        return -self.score(X)

    def explain(self, X: Any) -> Explanation:
        """Why samples X (n, m) get their scores; nothing is learned. Raises what score raises."""
        return sample_path.explain(self.state, X)

    def costs(self) -> Costs:
        """Confusion counts and cost of the labelled samples, and what the best fixed threshold would have cost."""
        return self.state.costs.totals()

    def describe(self) -> dict[str, Any]:
        """The model as JSON-able values in the user's units: nodes, weights, means, covariances, hyperplanes."""
        return describe(self.state.density, self.state.scaling if self.ready else None)

    def density_grid(self, i: int, j: int, size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The marginal of features i and j: x (size,), y (size,), log density (size, size) with y along the rows."""
        grid = self.grid(i, j, size)
        return grid.x, grid.y, grid.log_density(slice(None)).reshape(size, size)

    def grid(self, i: int, j: int, size: int) -> DensityGrid:
        """The same, to be computed in parts."""
        for name, feature in (("i", i), ("j", j)):
            if not 0 <= feature < self.config.n_features or i == j:
                raise InvalidObservation(name, feature, f"one of two different features below {self.config.n_features}")
        return DensityGrid(self.state.density, self.state.scaling, i, j, size)

    def renumber(self, first_seq: int) -> None:
        """Number its samples anew, the first one first_seq."""
        self.state.renumber(first_seq)

    def to_bytes(self) -> bytes:
        """The whole state; from_bytes continues bit for bit. InvalidState if it could not be read back."""
        return self.state.to_bytes()

    @classmethod
    def from_bytes(cls, blob: bytes) -> "Detector":
        """The detector that to_bytes wrote; InvalidSnapshot for anything else."""
        detector = cls.__new__(cls)
        detector.state = DetectorState.from_bytes(blob)
        return detector
