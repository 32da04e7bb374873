"""What is learned of a sample, and how a label changes that later.

config.learn_from says which samples are learned. Labels are +1 (anomalous), -1 (normal) and 0 (none). A record keeps
how its sample was learned, so that the density can take it back.
"""

from core.arrays import BoolArray, FloatArray
from core.density.round import Batch
from core.engine.state import DetectorState
from core.mixture.learned import LearnedSample
from core.records import Records
from core.records.layout import LEARNED, NOT_LEARNED, RETRACTED


def evaluate(state: DetectorState, X: FloatArray, time: FloatArray) -> Batch:
    """Scale samples (n, m) with timestamps (n,), score them by each node, and say how they would be learned. Pure."""
    return state.density.evaluate(state.columns(X, time), time)


def surprise(state: DetectorState, batch: Batch) -> FloatArray:
    """-log p (n,) of evaluated samples, given their context, in the user's units."""
    return state.scaling.score(batch.Z, batch.log_p)


def learn(state: DetectorState, batch: Batch, records: Records) -> None:
    """Learn those samples that learn_from wants, and note in their records how."""
    chosen = wanted(state, records)
    if chosen.all():
        where: BoolArray | slice = slice(None)
    elif chosen.any():
        where, batch = chosen, batch.rows(chosen)
    else:
        return
    records.note_learned(where, batch, state.density.next_ordinal)
    state.density.learn(batch)


def wanted(state: DetectorState, records: Records) -> BoolArray:
    """Say which samples (n,) learn_from wants in the density, by their labels and decisions."""
    label = records.label
    match state.config.learn_from:
        case "all":
            chosen: BoolArray = (label < 0) | ((label == 0) & records.ordinary)
        case "decided_normal":
            chosen = (label < 0) | ((label == 0) & ~records.is_anomaly)
        case _:
            chosen = label < 0
    return chosen


def relearn(state: DetectorState, record: Records) -> bool:
    """Learn one sample, take it back, or learn it again, as its new label wants; say whether it left the density."""
    row = record.rows[0]
    is_wanted, status = bool(wanted(state, record)[0]), int(row["status"])
    if is_wanted and status == NOT_LEARNED:
        learn(state, evaluate(state, record.x, record.time), record)
    elif is_wanted != (status == LEARNED) and status != NOT_LEARNED:
        (state.density.restore if is_wanted else state.density.retract)(_learned(state, record))
        row["status"] = LEARNED if is_wanted else RETRACTED
    return not is_wanted and status == LEARNED


def remember(state: DetectorState, record: Records) -> None:
    """Let the scores know the new label of one sample, by its values as they are learned."""
    if not state.resemblance.active:
        return
    row = record.rows[0]
    x = _learned(state, record).x if row["status"] != NOT_LEARNED else evaluate(state, record.x, record.time).learned[0]
    state.resemblance.label(int(row["seq"]), int(row["label"]), x)


def _learned(state: DetectorState, record: Records) -> LearnedSample:
    """How the sample of a record was learned."""
    moment = state.density.moments(record.rows["ordinal"].astype(float), record.time)
    return record.learned_sample(state.columns(record.x, record.time)[0], float(moment[0]))
