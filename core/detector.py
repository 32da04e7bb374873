"""Detector: scaling, density and threshold as one; the only face of core that a service needs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from core import explain
from core.arrays import BoolArray, FloatArray, IntArray
from core.config import DetectorConfig
from core.contributions import Explanation, explanation_of
from core.density import DensityModel, Examined
from core.errors import InvalidConfig, InvalidObservation, InvalidSnapshot, NotReady
from core.inputs import checked_labels, checked_samples, checked_times
from core.learned import Receipt
from core.outcomes import Costs, Outcomes
from core.records import LEARNED, NOT_LEARNED, RETRACTED, Records
from core.scaling import Scaling, estimated, given, typical
from core.snapshot import Arrays, decode, encode, take
from core.supervision import Supervision
from core.threshold import Threshold, threshold_of

VERSION: Final = 2
SEGMENT_ROWS: Final = 1024
"""Rows scored at a time when no round ends in between."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What observe says of n samples, in columns; score and threshold are nats, NaN before ready.

    explanation is that of the flagged samples, in their order, by the model that scored them; None if not asked for.
    """

    seq: IntArray
    score: FloatArray
    threshold: FloatArray
    is_anomaly: BoolArray
    ready: BoolArray
    samples_needed: int
    records: Records
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class Feedback:
    """What n labels did: outcome is applied, duplicate, revised or withdrawn.

    records replace those that were passed in; retracted tells which samples left the density's statistics.
    """

    outcome: list[str]
    retracted: BoolArray
    threshold_before: float
    threshold_after: float
    records: Records


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
        self._scaling: Scaling | None = None
        self._threshold: Threshold | None = None
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
        return self._scaling is not None

    @property
    def samples_needed(self) -> int:
        """Samples that the warm-up still needs; 0 once ready."""
        return 0 if self.ready else self.config.warmup - len(self._warmup)

    @property
    def threshold(self) -> float:
        """The threshold that the next score will meet, in nats; NaN before ready."""
        return np.nan if self._threshold is None else self._threshold.value

    @property
    def n_nodes(self) -> int:
        """Nodes of the model."""
        return self._model.tree.n_nodes

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
        parts += self._pass_by(X[waiting:], time[waiting:], explained)
        records = parts[0] if len(parts) == 1 else Records.concatenate([self._blank(X[:0], time[:0]), *parts]).compact()
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
        outcome, retracted = [], np.zeros(len(rows), bool)
        latest: dict[int, int] = {}
        for i, label in enumerate(new):
            self._refresh(rows, i, latest)
            latest[int(rows.seq[i])] = i
            outcome.append(_outcome(int(rows.label[i]), label))
            retracted[i] = self._relabel(rows, i, label)
        if self._threshold is not None:
            self._threshold.settle()
        return Feedback(outcome, retracted, before, self.threshold, rows.compact())

    def score(self, X: Any) -> FloatArray:
        """-log p of samples X (n, m), in nats of the user's units, high = anomalous; nothing is learned.

        Raises InvalidObservation as observe does, and NotReady during the warm-up.
        """
        X = checked_samples(X, self.config.n_features, self.config.features)
        if self._scaling is None:
            raise NotReady(self.samples_needed)
        parts = [self._scaling.score(Z, self._supervision.log_density(Z)) for Z in _segments(self._scaling.apply(X))]
        return np.concatenate([np.zeros(0), *parts])

    def log_density(self, X: Any) -> FloatArray:
        """log p of samples X (n, m): -score."""
        return -self.score(X)

    def explain(self, X: Any) -> Explanation:
        """Why samples X (n, m) get their scores; nothing is learned. Raises what score raises."""
        score = self.score(X)
        assert self._scaling is not None
        Z = self._scaling.apply(checked_samples(X, self.config.n_features, self.config.features))
        return self._explanation(Z, score)

    def costs(self) -> Costs:
        """Confusion counts and cost of the labelled samples, and what the best fixed threshold would have cost."""
        return self._outcomes.costs()

    def describe(self) -> dict[str, Any]:
        """The model as JSON-able values in the user's units: nodes, weights, means, covariances, hyperplanes."""
        return explain.describe(self._model, self._scaling)

    def density_grid(self, i: int, j: int, size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The marginal of features i and j: x (size,), y (size,), log density (size, size) with y along the rows."""
        for name, feature in (("i", i), ("j", j)):
            if not 0 <= feature < self.config.n_features or i == j:
                raise InvalidObservation(name, feature, f"one of two different features below {self.config.n_features}")
        if self._scaling is None:
            raise NotReady(self.samples_needed)
        return explain.density_grid(self._model, self._scaling, i, j, size)

    def to_bytes(self) -> bytes:
        """The whole state; from_bytes continues bit for bit."""
        meta = {"config": self.config.to_dict(), "first_seq": self.first_seq, "next_seq": self.next_seq}
        arrays = self._model.state() | self._supervision.state() | self._outcomes.state()
        arrays["warmup"] = np.frombuffer(self._warmup.to_bytes(), np.uint8)
        if self._scaling is not None and self._threshold is not None:
            arrays |= {"location": self._scaling.location, "scale": self._scaling.scale} | self._threshold.state()
        return encode("detector", VERSION, meta, arrays)

    @classmethod
    def from_bytes(cls, blob: bytes) -> "Detector":
        """The detector that to_bytes wrote; InvalidSnapshot for anything else."""
        meta, arrays = decode(blob, "detector", VERSION)
        try:
            config, first, following = meta["config"], meta["first_seq"], meta["next_seq"]
            detector = cls(DetectorConfig.from_dict(config), first_seq=first)
        except (KeyError, TypeError, InvalidConfig) as error:
            raise InvalidSnapshot(f"its config is not valid: {error}") from error
        if not (isinstance(first, int) and isinstance(following, int) and 1 <= first <= following < 2**62):
            raise InvalidSnapshot("its sequence numbers are not valid")
        detector.next_seq = following
        detector._load(arrays)
        return detector

    def _load(self, arrays: Arrays) -> None:
        for name, array in arrays.items():
            if array.dtype == np.float64 and "pending" not in name and not np.isfinite(array).all():
                raise InvalidSnapshot(f"its array {name!r} holds a number that is not finite")
        self._warmup = Records.from_bytes(take(arrays, "warmup", np.uint8, (-1,)).tobytes())
        if "location" in arrays:
            location, scale = (take(arrays, k, np.float64, (self.config.n_features,)) for k in ("location", "scale"))
            if not ((scale >= 1e-150) & (scale <= 1e150)).all() or (np.abs(location) > 1e300).any():
                raise InvalidSnapshot("its scaling is out of range")
            self._begin(Scaling(location, scale, self.config.kinds)).load(arrays)
        self._model.load(arrays)
        self._supervision.load(arrays)
        self._outcomes.load(arrays)
        warm, n = self._warmup, len(self._warmup)
        fits = warm.x.shape[1] == self.config.n_features and n == min(self.n_seen, self.config.warmup)
        if not fits or ("location" in arrays) != (n == self.config.warmup) or np.isnan(warm.x).all(1).any():
            raise InvalidSnapshot("its warm-up does not fit its config")

    def _begin(self, scaling: Scaling) -> Threshold:
        self._scaling = scaling
        self._threshold = threshold_of(self.config, scaling.log_volume)
        return self._threshold

    @property
    def _receipt_bits(self) -> int:
        """The most nodes that a receipt has to say something of."""
        return self.config.max_nodes if self.config.profile == "paper" else 0

    def _blank(self, X: FloatArray, time: FloatArray, *, n_nodes: int = 0, altered: bool = False) -> Records:
        """New records of the next samples, with nothing said of them yet."""
        records = Records.empty(len(X), self.config.n_features, n_nodes, altered=altered)
        records.rows["seq"] = np.arange(self.next_seq, self.next_seq + len(X))
        records.rows["x"], records.rows["time"] = X, time
        return records

    def _warm_up(self, X: FloatArray, time: FloatArray) -> Records:
        """Keep samples until there are enough to fix the scaling; then learn them as if they came now."""
        records = self._blank(X, time)
        self.next_seq += len(X)
        self._warmup = Records.concatenate([self._warmup, records]).compact()
        if not self.samples_needed:
            scaling = estimated(self._warmup.x, self.config.kinds)
            self._begin(scaling)
            self._model.nodes.expect(*typical(scaling.apply(self._warmup.x)))
            self._warmup = Records.concatenate([self._warmup], self._receipt_bits)
            for i in range(len(self._warmup)):
                self._pass_warm(scaling, self._warmup, i)
            self._warmup = self._warmup.compact()
        return records

    def _pass_warm(self, scaling: Scaling, records: Records, i: int) -> None:
        """Learn one warm-up sample, and let the threshold see the score that it would have had."""
        record = records[i]
        examined = self._model.examine(scaling.apply(record.x), record.time)
        self._judge(examined, Records(record.rows.copy()))
        self._learn(examined, record)
        if (label := int(record.label[0])) != 0:
            self._teach(records, i, 0, label)

    def _pass_by(self, X: FloatArray, time: FloatArray, explained: list[Explanation] | None) -> list[Records]:
        """Score, decide and learn samples in segments in which the model stands still."""
        parts = []
        while len(X):
            size = SEGMENT_ROWS if self.config.learn_from == "labelled_normal" else self._model.room
            parts.append(self._pass_segment(X[:size], time[:size], explained))
            X, time = X[size:], time[size:]
        return parts

    def _pass_segment(self, X: FloatArray, time: FloatArray, explained: list[Explanation] | None) -> Records:
        assert self._scaling is not None
        examined = self._model.examine(self._scaling.apply(X), time)
        records = self._blank(X, time, n_nodes=examined.left.shape[1], altered=bool(examined.altered.any()))
        self.next_seq += len(X)
        score, flagged = self._judge(examined, records)
        self._outcomes.count(flagged)
        if explained is not None and flagged.any():
            explained.append(self._explanation(examined.Z[flagged], score[flagged]))
        self._learn(examined, records)
        return records

    def _explanation(self, Z: FloatArray, score: FloatArray) -> Explanation:
        assert self._scaling is not None
        return explanation_of(self._supervision.models(), self._scaling, Z, score)

    def _judge(self, examined: Examined, records: Records) -> tuple[FloatArray, BoolArray]:
        """Scores (n,) in the user's units and decisions; the records get what a label will need to know of both."""
        assert self._scaling is not None
        assert self._threshold is not None
        log_density, gain = self._supervision.judge(examined)
        score = self._scaling.score(examined.Z, log_density)
        rows = records.rows
        rows["level"], rows["gain"] = self._threshold.levels(score), gain
        threshold = self._threshold.pass_by(score)
        flagged: BoolArray = score > threshold
        rows["score"], rows["threshold"], rows["is_anomaly"], rows["ready"] = score, threshold, flagged, True
        return score, flagged

    def _wanted(self, label: Any, flagged: Any) -> Any:
        """Whether learn_from wants samples of this label and decision in the density."""
        match self.config.learn_from:
            case "all":
                return label <= 0
            case "decided_normal":
                return (label < 0) | ((label == 0) & ~flagged)
        return label < 0

    def _learn(self, examined: Examined, records: Records) -> None:
        """Learn those of the samples that learn_from wants, and write their receipts."""
        wanted = self._wanted(records.rows["label"], records.rows["is_anomaly"])
        if wanted.all():
            records.note_learned(slice(None), examined, self._model.next_ordinal)
            self._model.learn(examined)
        elif wanted.any():
            chosen = np.flatnonzero(wanted)
            part = examined.rows(chosen)
            records.note_learned(chosen, part, self._model.next_ordinal)
            self._model.learn(part)

    def _refresh(self, rows: Records, i: int, latest: dict[int, int]) -> None:
        """Bring a record up to date: a label earlier in this call, or the warm-up's end, may have changed it."""
        seq = int(rows.seq[i])
        if seq in latest:
            rows.rows[i] = rows.rows[latest[seq]]
        elif seq - self.first_seq < len(self._warmup):
            rows.put(i, self._warmup[seq - self.first_seq])

    def _relabel(self, rows: Records, i: int, label: int) -> bool:
        """Give one record its label, move threshold, totals and density; whether it left the density."""
        row = rows.rows[i]
        old, row["label"] = int(row["label"]), label
        retracted = False
        if label != old and self._threshold is not None:
            if row["ready"]:
                self._threshold.label(int(row["seq"]), float(row["score"]), label, float(row["level"]))
                self._outcomes.move(float(row["score"]), bool(row["is_anomaly"]), old, label)
            retracted = self._move_in_density(rows, i)
            self._teach(rows, i, old, label)
        if row["seq"] - self.first_seq < len(self._warmup):
            self._warmup = self._warmup.replaced(int(row["seq"]) - self.first_seq, rows[i])
        return retracted

    def _move_in_density(self, rows: Records, i: int) -> bool:
        assert self._scaling is not None
        row = rows.rows[i]
        wanted, status = bool(self._wanted(row["label"], row["is_anomaly"])), int(row["status"])
        if wanted and status == NOT_LEARNED:
            examined = self._model.examine(self._scaling.apply(row["x"][None]), row["time"][None])
            self._learn(examined, rows[i])
        elif wanted != (status == LEARNED) and status != NOT_LEARNED:
            receipt = self._receipt(rows, i)
            (self._model.restore if wanted else self._model.retract)(receipt)
            row["status"] = LEARNED if wanted else RETRACTED
        return not wanted and status == LEARNED

    def _receipt(self, rows: Records, i: int) -> Receipt:
        assert self._scaling is not None
        row = rows.rows[i]
        moment = float(self._model.moments(row["ordinal"].astype(float), row["time"]))
        return rows.receipt(i, self._scaling.apply(row["x"]), moment)

    def _teach(self, rows: Records, i: int, old: int, label: int) -> None:
        """Let the second model take a normal in or out, and the nodes' normality know."""
        assert self._scaling is not None
        row = rows.rows[i]
        if not self._supervision.needed:
            return
        if row["status"] == NOT_LEARNED:
            x = self._model.examine(self._scaling.apply(row["x"][None]), row["time"][None]).learned[0]
        else:
            receipt = self._receipt(rows, i)
            x = receipt.x
            if old < 0:
                self._supervision.normals.retract(replace(receipt, ordinal=int(row["normal_ordinal"])))
            if label < 0:
                row["normal_ordinal"] = self._supervision.learn(receipt)
        self._supervision.label(int(row["seq"]), label, float(row["gain"]), x)


def _segments(Z: FloatArray) -> list[FloatArray]:
    return [Z[start : start + SEGMENT_ROWS] for start in range(0, len(Z), SEGMENT_ROWS)]


def _outcome(old: int, new: int) -> str:
    if old == new:
        return "duplicate"
    if new == 0:
        return "withdrawn"
    return "applied" if old == 0 else "revised"
