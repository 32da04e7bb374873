"""What a detector answers: to samples, and to labels."""

from dataclasses import dataclass

from core.arrays import BoolArray, FloatArray, IntArray
from core.records import Records
from core.views.explanation import Explanation


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
