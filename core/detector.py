"""Detector: the face of core. It holds a state; samples and labels take their paths over it (core.engine)."""

from collections.abc import Mapping, Sequence
from typing import Any

from core.arrays import FloatArray
from core.config import DetectorConfig
from core.config.changes import ConfigChange
from core.engine import label_path, sample_path, together
from core.engine.reconfigure import reconfigured
from core.engine.state import DetectorState
from core.engine.warm_start import warm_started
from core.errors import InvalidObservation
from core.feedback.costs import Costs
from core.records import Records
from core.results import Feedback, Observation
from core.views.band import ExpectedBand
from core.views.description import DensityGrid, describe
from core.views.explanation import Explanation


class Detector:
    """Scores samples, decides which are anomalies, learns them, and learns from labels that come later.

    A sample is always scored before it is learned. The same config, samples and labels in the same order give the same
    scores and the same to_bytes(), however the samples are cut into batches and whenever the state was restored.

    During the warm-up samples have no score: the first config.warmup of them set the first scaling. Samples are
    numbered from first_seq on. state is everything that the detector knows.

    >>> import numpy as np
    >>> detector = Detector(DetectorConfig(n_features=2))
    >>> out = detector.observe(np.random.default_rng(0).normal(size=(500, 2)))
    >>> bool(out.ready[-1]), out.score.shape, bool(detector.observe([[9.0, -9.0]]).is_anomaly[0])
    (True, (500,), True)
    """

    def __init__(self, config: DetectorConfig, *, first_seq: int = 1) -> None:
        self.state = DetectorState(config, first_seq=first_seq)

    @classmethod
    def warm_started(
        cls, config: DetectorConfig, source: "Detector", n_samples: int, *, first_seq: int = 1
    ) -> "Detector":
        """Make a detector that begins with the model of another, which counts as n_samples, at least one.

        It needs no warm-up: units, tree and densities are there, and as many ordinary scores, by which it decides. It
        has no samples of the other one, and no labels. Raises NotReady if the other one is still warming up, and
        InvalidConfig, with the reason, if its model does not fit the config.
        """
        detector = cls.__new__(cls)
        detector.state = warm_started(config, source.state, n_samples, first_seq)
        return detector

    @property
    def config(self) -> DetectorConfig:
        """The config, with every field resolved."""
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
    def is_warm(self) -> bool:
        """Whether it has begun with the model of another detector; its features are in that one's order."""
        return self.state.is_warm

    @property
    def samples_needed(self) -> int:
        """Samples that the warm-up still needs; 0 once ready."""
        return self.state.samples_needed

    @property
    def n_held_out(self) -> int:
        """Samples observed so far that were held out."""
        return self.state.held_out.n

    @property
    def n_flagged(self) -> int:
        """Samples flagged so far."""
        return self.state.costs.n_flagged

    @property
    def n_incidents(self) -> int:
        """Incidents opened so far."""
        return self.state.rule.incidents.n_opened if self.ready else 0

    @property
    def incident(self) -> int:
        """The incident that is open: the seq of the sample that opened it, 0 if there is none."""
        return self.state.incident

    @property
    def n_nodes(self) -> int:
        """Nodes of the tree."""
        return self.state.density.tree.n_nodes

    @property
    def n_levels(self) -> int:
        """Levels of the tree; 1 if there is only the root."""
        return int(self.state.density.tree.level.max()) + 1

    @property
    def n_splits(self) -> int:
        """Nodes cut in two since this object was made or restored."""
        return self.state.density.tree.n_splits

    @property
    def threshold(self) -> float:
        """The threshold that the next score will meet, in nats; NaN before ready."""
        return self.state.next_threshold

    @property
    def newest_time(self) -> float | None:
        """The newest timestamp observed, in seconds; None before any, and without a half-life in seconds."""
        return self.state.newest_time

    def observe(self, X: Any, times: Any = None, *, held_out: Any = None, explain: bool = False) -> Observation:
        """Score samples X (n, m) one after the other, decide, and learn each after it was scored.

        X is in the user's units, NaN where a value is missing. times (n,) are timestamps in seconds, needed if
        config.half_life_seconds or config.calendar is set; for a calendar alone some may be NaN, not known. explain
        explains the flagged samples, and leaves the state as it is without.

        held_out (n,), booleans, says which samples only get a number, a score and a decision by the model as it is. All
        others are answered as if those had never come, and leave the same model.

        Raises InvalidObservation, and changes nothing, if X has another shape, an infinity, a row without any value or
        a value that its feature cannot have, if times are missing, not finite or beyond 1e15, or if held_out is no mask
        of the samples.
        """
        return sample_path.observe(self.state, X, times, held_out=held_out, explain=explain)

    def feedback(self, records: Records, labels: Sequence[bool | None]) -> Feedback:
        """Learn the true labels of samples, one a record: True anomalous, False normal, None withdraws a label.

        records are the newest ones of these samples: those of observe, or of an earlier feedback. A label moves the
        threshold by the score and decision of that time, and the sample leaves or joins the density as
        config.learn_from says. The same label again changes nothing.

        Raises InvalidObservation, and changes nothing, if a label is of another type, a sample was never observed, or
        one sample gets two labels.
        """
        return label_path.feedback(self.state, records, labels)

    def score(self, X: Any, times: Any = None) -> FloatArray:
        """Give the scores (n,) of samples X (n, m); nothing is learned. times (n,) are needed for a calendar.

        A score is -log p(x), eq. (1) and (2), given the context, eq. (37), in nats, of densities in the user's units,
        and what labels add to it, eq. (36); high means anomalous. Raises InvalidObservation as observe does, and
        NotReady during the warm-up.
        """
        return sample_path.score(self.state, X, times)

    def severity(self, score: FloatArray) -> FloatArray:
        """-log10 of the chance that an ordinary sample scores as high as these (n,), once the warm-up is over."""
        return self.state.rule.severities(score)

    def log_density(self, X: Any, times: Any = None) -> FloatArray:
        """Give log p(x), given the context, (n,) of samples X (n, m), whatever labels say. Raises what score raises."""
        return sample_path.log_density(self.state, X, times)

    def explain(self, X: Any, times: Any = None) -> Explanation:
        """Explain the scores of samples X (n, m); nothing is learned. Raises what score raises."""
        return sample_path.explain(self.state, X, times)

    def costs(self) -> Costs:
        """Count what the decisions on labelled samples cost, and what the best fixed threshold would have cost."""
        return self.state.costs.totals()

    def describe(self) -> dict[str, Any]:
        """Describe the model as JSON-able values in the user's units: nodes, weights, means, covariances, hyperplanes.

        No nodes during the warm-up.
        """
        return describe(self.state.density, self.state.scaling if self.ready else None)

    def density_grid(self, i: int, j: int, size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Give the marginal density of features i and j as x (size,), y (size,) and its log (size, size), y along rows.

        Raises what grid raises.
        """
        grid = self.grid(i, j, size)
        return grid.x, grid.y, grid.log_density(slice(None)).reshape(size, size)

    def grid(self, i: int, j: int, size: int) -> DensityGrid:
        """Prepare the marginal density of features i and j on size x size points; the grid computes it in parts.

        Raises InvalidObservation if i and j are not two features, and NotReady during the warm-up.
        """
        for name, feature in (("i", i), ("j", j)):
            if not 0 <= feature < self.config.n_features or i == j:
                raise InvalidObservation(name, feature, f"one of two different features below {self.config.n_features}")
        return DensityGrid(self.state.density, self.state.scaling, i, j, size)

    def band(self, feature: int) -> ExpectedBand:
        """Prepare the values between which a feature is expected, given context; the band gives its quantiles.

        Raises InvalidObservation if the feature is none, or is context, and NotReady during the warm-up.
        """
        return ExpectedBand(self.state.density, self.state.scaling, feature)

    def reconfigure(self, changes: Mapping[str, Any]) -> ConfigChange:
        """Change fields of the config, as from_dict reads them, and keep what was learned; give those that differ.

        The changes hold from the next sample on; core.config.changes says which fields can change. Raises
        InvalidConfig, and changes nothing, for another field or a value out of range.

        >>> detector = Detector(DetectorConfig(n_features=2))
        >>> detector.reconfigure({"cost_false_positive": 5.0}).after
        {'cost_false_positive': 5.0}
        >>> detector.reconfigure({"family": "gaussian_diagonal"})
        Traceback (most recent call last):
        core.errors.InvalidConfig: family is 'gaussian_diagonal', but must be 'gaussian', as it is: it cannot change,
        for the nodes have it
        """
        before = self.config
        self.state = reconfigured(self.state, changes)
        return ConfigChange.between(before, self.config)

    def renumber(self, first_seq: int) -> None:
        """Number the samples anew, from first_seq on; records made before are of no use afterwards."""
        self.state.renumber(first_seq)

    def to_bytes(self) -> bytes:
        """Save the whole state; from_bytes goes on from it bit for bit. Raises InvalidState if it could not be read."""
        return self.state.to_bytes()

    @classmethod
    def from_bytes(cls, blob: bytes) -> "Detector":
        """Restore the detector that to_bytes saved. Raises InvalidSnapshot for anything else."""
        detector = cls.__new__(cls)
        detector.state = DetectorState.from_bytes(blob)
        return detector


def observe_together(
    detectors: Sequence[Detector], samples: Sequence[FloatArray], times: FloatArray
) -> list[Records | None]:
    """Observe one sample (1, m) for each of many different detectors, with timestamps (n,), NaN for none.

    Gives what observe would give, and changes each detector as it would, at a fraction of the cost. None stands for a
    detector that has to observe its sample by itself, as while it warms up; it has not changed.
    """
    return together.observe([detector.state for detector in detectors], samples, times)
