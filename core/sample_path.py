"""Samples as they pass by: each is scored and decided by what was learned before it, and learned after that."""

from typing import Any, Final

import numpy as np

from core.arrays import BoolArray, FloatArray
from core.config import DetectorConfig
from core.density.model import DensityModel
from core.density.round import Examined
from core.feedback.costs import Outcomes
from core.feedback.supervision import Supervision
from core.records import Records
from core.scaling import Scaling
from core.threshold import Threshold, threshold_of
from core.views.contributions import Explanation, explanation_of

SEGMENT_ROWS: Final = 1024
"""Rows scored at a time when no round ends in between."""


class Passing:
    """The path of a sample once the scaling is known."""

    def __init__(
        self,
        config: DetectorConfig,
        model: DensityModel,
        supervision: Supervision,
        outcomes: Outcomes,
        scaling: Scaling,
    ) -> None:
        self.scaling = scaling
        self.threshold: Threshold = threshold_of(config, scaling.log_volume)
        self._learn_from = config.learn_from
        self._model, self._supervision, self._outcomes = model, supervision, outcomes

    def pass_by(self, seq: int, X: FloatArray, time: FloatArray, explained: list[Explanation] | None) -> list[Records]:
        """Score, decide and learn samples (n, m), the first one number seq, in segments that one frozen model scores.

        explained, if there is such a list, gets the explanations of those that are flagged.
        """
        parts, start = [], 0
        while start < len(X):
            size = SEGMENT_ROWS if self._learn_from == "labelled_normal" else self._model.room
            segment = slice(start, start + size)
            parts.append(self._pass_segment(seq + start, X[segment], time[segment], explained))
            start += size
        return parts

    def _pass_segment(self, seq: int, X: FloatArray, time: FloatArray, explained: list[Explanation] | None) -> Records:
        examined = self.examine(X, time)
        n_nodes = examined.left.shape[1]
        records = Records.of(seq, X, time, n_nodes=n_nodes, altered=examined.any_altered)
        score, flagged = self.judge(examined, records)
        self._outcomes.count(flagged)
        if explained is not None and flagged.any():
            explained.append(self.explanation(examined.Z[flagged], score[flagged]))
        self.learn(examined, records)
        return records

    def score(self, X: FloatArray) -> FloatArray:
        """Scores (n,) of samples (n, m), which nothing learns."""
        Z = self.scaling.apply(X)
        segments = [Z[start : start + SEGMENT_ROWS] for start in range(0, len(Z), SEGMENT_ROWS)]
        parts = [self.scaling.score(segment, self._supervision.log_density(segment)) for segment in segments]
        return np.concatenate([np.zeros(0), *parts])

    def explanation(self, Z: FloatArray, score: FloatArray) -> Explanation:
        """Why scaled samples (n, m) have these scores (n,)."""
        return explanation_of(self._supervision.models(), self.scaling, Z, score)

    def examine(self, X: FloatArray, time: FloatArray) -> Examined:
        """What the density says of samples (n, m), in the user's units, and how it would learn them."""
        return self._model.examine(self.scaling.apply(X), time)

    def judge(self, examined: Examined, records: Records) -> tuple[FloatArray, BoolArray]:
        """Scores (n,) in the user's units and decisions; the records get what a label will need to know of both."""
        log_density, gain = self._supervision.judge(examined)
        score = self.scaling.score(examined.Z, log_density)
        rows = records.rows
        rows["level"], rows["gain"] = self.threshold.levels(score), gain
        threshold = self.threshold.pass_by(score)
        flagged: BoolArray = score > threshold
        rows["score"], rows["threshold"], rows["is_anomaly"], rows["ready"] = score, threshold, flagged, True
        return score, flagged

    def wanted(self, label: Any, flagged: Any) -> Any:
        """Whether learn_from wants samples of this label and decision in the density."""
        match self._learn_from:
            case "all":
                return label <= 0
            case "decided_normal":
                return (label < 0) | ((label == 0) & ~flagged)
        return label < 0

    def learn(self, examined: Examined, records: Records) -> None:
        """Learn those of the samples that learn_from wants, and write their receipts."""
        wanted = self.wanted(records.rows["label"], records.rows["is_anomaly"])
        if wanted.all():
            records.note_learned(slice(None), examined, self._model.next_ordinal)
            self._model.learn(examined)
        elif wanted.any():
            chosen = np.flatnonzero(wanted)
            part = examined.rows(chosen)
            records.note_learned(chosen, part, self._model.next_ordinal)
            self._model.learn(part)
