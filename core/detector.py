"""Detector: scaling, density and threshold as one; the only face of core that a service needs."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from core.arrays import FloatArray
from core.config import DetectorConfig
from core.density.model import DensityModel
from core.errors import InvalidConfig, InvalidObservation, InvalidSnapshot, InvalidState, NotReady
from core.feedback.costs import Costs, Outcomes
from core.feedback.supervision import Supervision
from core.label_path import Labelling, outcome
from core.records import Records
from core.results import Feedback, Observation
from core.sample_path import Passing
from core.scaling import Scaling, check_scaling, estimated, given, typical
from core.sizes import check_sizes
from core.snapshot import Arrays, decode, encode, take
from core.threshold import threshold_of
from core.validation import checked_labels, checked_samples, checked_times
from core.views import description as explain
from core.views.contributions import Explanation
from core.views.description import DensityGrid

VERSION: Final = 3
OLDER: Final = (2,)
"""Versions that are read too."""


class Detector:
    """Scores samples, decides, learns them, and learns from labels that come later.

    Deterministic: the same config, samples and labels in the same order give the same scores and the same to_bytes(),
    however the samples were cut into batches. A sample is always scored before it is learned.

    >>> detector = Detector(DetectorConfig(n_features=2))
    >>> out = detector.observe(np.random.default_rng(0).normal(size=(500, 2)))
    >>> bool(out.ready[-1]), out.score.shape, bool(detector.observe([[9.0, -9.0]]).is_anomaly[0])
    (True, (500,), True)
    """

    def __init__(self, config: DetectorConfig, *, first_seq: int = 1) -> None:
        self.config = config
        self.first_seq = self.next_seq = first_seq
        self._model = DensityModel(config)
        self._supervision = Supervision(config, self._model)
        self._outcomes = Outcomes(config.cost_false_negative, config.cost_false_positive)
        self._warmup = Records.empty(0, config.n_features, 0, altered=False)
        self._passing: Passing | None = None
        scaling = given(config)
        if scaling is not None:
            self._begin(scaling)

    @property
    def n_seen(self) -> int:
        """Samples observed so far."""
        return self.next_seq - self.first_seq

    @property
    def ready(self) -> bool:
        """Whether the warm-up is over, so that the next sample gets a score."""
        return self._passing is not None

    @property
    def samples_needed(self) -> int:
        """Samples that the warm-up still needs; 0 once ready."""
        return 0 if self.ready else self.config.warmup - len(self._warmup)

    @property
    def n_flagged(self) -> int:
        """Samples found anomalous so far."""
        return self._outcomes.n_flagged

    @property
    def n_nodes(self) -> int:
        """Nodes of the tree."""
        return self._model.tree.n_nodes

    @property
    def n_levels(self) -> int:
        """Levels of the tree; 1 while the root is all there is."""
        return int(self._model.tree.level.max()) + 1

    @property
    def threshold(self) -> float:
        """The threshold that the next score will meet, in nats; NaN before ready."""
        return np.nan if self._passing is None else self._passing.threshold.value

    @property
    def newest_time(self) -> float | None:
        """The newest timestamp by which what is learned fades; None before any, or without a half-life in seconds."""
        if self.config.half_life_seconds is None:
            return None
        newest = max(self._model.newest_time, self._supervision.newest_time, self._warmup.time.max(initial=-np.inf))
        return float(newest) if np.isfinite(newest) else None

    @property
    def n_splits(self) -> int:
        """Nodes cut in two since this object was made; a snapshot does not hold it."""
        return self._model.tree.n_splits

    def observe(self, X: Any, times: Any = None, *, explain: bool = False) -> Observation:
        """Score samples X (n, m) one after the other, decide, and learn each after it was scored; NaN is missing.

        times (n,) are their timestamps in seconds, needed if what is learned has a half-life in seconds. With explain
        the flagged samples are explained; the state is the same without. Raises InvalidObservation, and changes
        nothing, if X has another shape, an infinity, or a row with nothing known, or a time is not a finite number.
        """
        X = checked_samples(X, self.config.n_features, self.config.features)
        time = checked_times(times, len(X), needed=self.config.half_life_seconds is not None)
        waiting = min(len(X), self.samples_needed)
        parts = [self._warm_up(X[:waiting], time[:waiting])] if waiting else []
        explained = [Explanation.empty(self.config.n_features)] if explain else None
        if self._passing is not None and waiting < len(X):
            parts += self._passing.pass_by(self.next_seq, X[waiting:], time[waiting:], explained)
            self.next_seq += len(X) - waiting
        records = parts[0] if len(parts) == 1 else self._together(parts)
        return Observation(
            records.seq.copy(),
            records.score.copy(),
            records.threshold.copy(),
            records.is_anomaly.copy(),
            records.ready.copy(),
            self.samples_needed,
            records,
            None if explained is None else Explanation.concatenate(explained),
        )

    def feedback(self, records: Records, labels: Sequence[bool | None]) -> Feedback:
        """Learn true labels, one a record: True anomalous, False normal, None withdraws what was said before.

        The label moves the threshold by the score and decision of that time, and the sample leaves or joins the density
        as learn_from says. Raises InvalidObservation, and changes nothing, if a label is of another type, or one sample
        gets two.
        """
        new = checked_labels(labels, records.seq, self.first_seq, self.next_seq)
        before = self.threshold
        rows = Records.concatenate([records], self._receipt_bits)
        outcomes, retracted = [], np.zeros(len(rows), bool)
        latest: dict[int, int] = {}
        for i, label in enumerate(new):
            self._refresh(rows, i, latest)
            latest[int(rows.seq[i])] = i
            outcomes.append(outcome(int(rows.label[i]), label))
            retracted[i] = self._relabel(rows, i, label)
        if self._passing is not None:
            self._passing.threshold.settle()
        return Feedback(outcomes, retracted, before, self.threshold, rows.compact())

    def score(self, X: Any) -> FloatArray:
        """-log p of samples X (n, m), in nats of the user's units, high = anomalous; nothing is learned.

        Raises InvalidObservation as observe does, and NotReady during the warm-up.
        """
        X = checked_samples(X, self.config.n_features, self.config.features)
        return self._path.score(X)

    def log_density(self, X: Any) -> FloatArray:
        """log p of samples X (n, m): -score."""
        return -self.score(X)

    def explain(self, X: Any) -> Explanation:
        """Why samples X (n, m) get their scores; nothing is learned. Raises what score raises."""
        X = checked_samples(X, self.config.n_features, self.config.features)
        path = self._path
        return path.explanation(path.scaling.apply(X), path.score(X))

    def costs(self) -> Costs:
        """Confusion counts and cost of the labelled samples, and what the best fixed threshold would have cost."""
        return self._outcomes.costs()

    def describe(self) -> dict[str, Any]:
        """The model as JSON-able values in the user's units: nodes, weights, means, covariances, hyperplanes."""
        return explain.describe(self._model, None if self._passing is None else self._passing.scaling)

    def density_grid(self, i: int, j: int, size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The marginal of features i and j: x (size,), y (size,), log density (size, size) with y along the rows."""
        grid = self.grid(i, j, size)
        return grid.x, grid.y, grid.log_density(slice(None)).reshape(size, size)

    def grid(self, i: int, j: int, size: int) -> DensityGrid:
        """The same, to be computed in parts."""
        for name, feature in (("i", i), ("j", j)):
            if not 0 <= feature < self.config.n_features or i == j:
                raise InvalidObservation(name, feature, f"one of two different features below {self.config.n_features}")
        return DensityGrid(self._model, self._path.scaling, i, j, size)

    def to_bytes(self) -> bytes:
        """The whole state; from_bytes continues bit for bit. InvalidState if it could not be read back."""
        arrays = self._model.state() | self._supervision.state() | self._outcomes.state()
        arrays["warmup"] = np.frombuffer(self._warmup.to_bytes(), np.uint8)
        if self._passing is not None:
            scaling = self._passing.scaling
            arrays |= {"location": scaling.location, "scale": scaling.scale} | self._passing.threshold.state()
        try:
            self._check(arrays)
        except InvalidSnapshot as error:
            raise InvalidState(error.reason) from error
        meta = {"config": self.config.to_dict(), "first_seq": self.first_seq, "next_seq": self.next_seq}
        return encode("detector", VERSION, meta, arrays)

    @classmethod
    def from_bytes(cls, blob: bytes) -> "Detector":
        """The detector that to_bytes wrote; InvalidSnapshot for anything else."""
        meta, arrays = decode(blob, "detector", VERSION, *OLDER)
        try:
            detector = cls(DetectorConfig.from_dict(meta["config"]), first_seq=meta["first_seq"])
            detector.next_seq = meta["next_seq"]
        except (KeyError, TypeError, InvalidConfig) as error:
            raise InvalidSnapshot(f"its config is not valid: {error}") from error
        detector._warmup = Records.from_bytes(take(arrays, "warmup", np.uint8, (-1,)).tobytes())
        detector._check(arrays)
        detector._load(arrays)
        return detector

    def _check(self, arrays: Arrays) -> None:
        """InvalidSnapshot if these arrays are not a state of this config and these numbers: no history leads there."""
        seqs = self.first_seq, self.next_seq
        if not all(type(seq) is int for seq in seqs) or not 1 <= self.first_seq <= self.next_seq < 2**62:
            raise InvalidSnapshot("its sequence numbers are not valid")
        check_sizes(arrays)
        self._check_warmup(ready="location" in arrays)
        self._model.check(arrays)
        self._supervision.check(arrays)
        self._outcomes.check(arrays)
        if "location" in arrays:
            location, scale = (take(arrays, k, np.float64, (self.config.n_features,)) for k in ("location", "scale"))
            check_scaling(location, scale, self.config)
            threshold_of(self.config, 0.0).check(arrays)

    def _check_warmup(self, *, ready: bool) -> None:
        warm = self._warmup
        warm.check()
        n, m = warm.x.shape
        if (
            m != self.config.n_features
            or n != min(self.n_seen, self.config.warmup)
            or ready != (n == self.config.warmup)
        ):
            raise InvalidSnapshot("its warm-up does not fit its config")
        try:
            checked_samples(warm.x, m, self.config.features)
        except InvalidObservation as error:
            raise InvalidSnapshot(f"its warm-up holds what is no sample: {error}") from error
        self._model.check_times(warm.time)

    def _load(self, arrays: Arrays) -> None:
        if "location" in arrays:
            self._begin(Scaling(arrays["location"], arrays["scale"], self.config.kinds)).threshold.load(arrays)
        self._model.load(arrays)
        self._supervision.load(arrays)
        self._outcomes.load(arrays)

    def _begin(self, scaling: Scaling) -> Passing:
        """Open the path of samples, and of labels, by a scaling that stays for good."""
        self._passing = Passing(self.config, self._model, self._supervision, self._outcomes, scaling)
        self._labelling = Labelling(self._passing, self._model, self._supervision, self._outcomes)
        return self._passing

    @property
    def _path(self) -> Passing:
        if self._passing is None:
            raise NotReady(self.samples_needed)
        return self._passing

    @property
    def _receipt_bits(self) -> int:
        """The most nodes that a receipt has to say something of."""
        return self.config.max_nodes if self.config.profile == "paper" else 0

    def _warm_up(self, X: FloatArray, time: FloatArray) -> Records:
        """Keep samples until there are enough to fix the scaling; then learn them as if they came now."""
        records = Records.of(self.next_seq, X, time)
        self.next_seq += len(X)
        self._warmup = Records.concatenate([self._warmup, records]).compact()
        if not self.samples_needed:
            scaling = estimated(self._warmup.x, self.config.kinds)
            passing = self._begin(scaling)
            self._model.nodes.expect(*typical(scaling.apply(self._warmup.x)))
            self._warmup = Records.concatenate([self._warmup], self._receipt_bits)
            for i in range(len(self._warmup)):
                self._pass_warm(passing, self._warmup, i)
            self._warmup = self._warmup.compact()
        return records

    def _pass_warm(self, passing: Passing, records: Records, i: int) -> None:
        """Learn one warm-up sample, and let the threshold see the score that it would have had."""
        record = records[i]
        examined = passing.examine(record.x, record.time)
        passing.judge(examined, Records(record.rows.copy()))
        passing.learn(examined, record)
        if (label := int(record.label[0])) != 0:
            self._labelling.teach(records, i, 0, label)

    def _together(self, parts: list[Records]) -> Records:
        nothing = Records.empty(0, self.config.n_features, 0, altered=False)
        return Records.concatenate([nothing, *parts]).compact()

    def _refresh(self, rows: Records, i: int, latest: dict[int, int]) -> None:
        """Bring a record up to date: a label earlier in this call, or the warm-up's end, may have changed it."""
        seq = int(rows.seq[i])
        if seq in latest:
            rows.rows[i] = rows.rows[latest[seq]]
        elif seq - self.first_seq < len(self._warmup):
            rows.put(i, self._warmup[seq - self.first_seq])

    def _relabel(self, rows: Records, i: int, label: int) -> bool:
        """Give one record its label; whether it left the density."""
        row = rows.rows[i]
        old, row["label"] = int(row["label"]), label
        retracted = label != old and self.ready and self._labelling.follow(rows, i, old, label)
        if row["seq"] - self.first_seq < len(self._warmup):
            self._warmup = self._warmup.replaced(int(row["seq"]) - self.first_seq, rows[i])
        return retracted
