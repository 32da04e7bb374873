"""Observing a batch: known ids are answered again, new samples are scored, learned and logged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt

from app.storage import Entry, Position
from app.streams.changes.allowance import UNLIMITED, Allowance
from app.streams.changes.metrics import count_learned
from app.streams.changes.samples import Matrix, Samples, feature_names
from app.streams.changes.timestamps import Times, checked_times
from app.streams.errors import IdConflict, InvalidIds, UnknownStream, refuse_beyond
from app.streams.faults import Fault
from app.streams.log.events import batch_body
from app.streams.log.explanations import Explained, explained_in
from app.streams.open.replay import newest
from app.streams.open.session import Session
from app.streams.open.slices import FIRST_ROWS, observe_slices
from app.streams.open.state import StreamState
from core import DetectorConfig, Records

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples of one request; ids ("" for none) and timestamps are either empty or one a sample.

    explain asks why those that are flagged are.
    """

    samples: Samples
    ids: tuple[str, ...] = ()
    timestamps: Times | None = None
    explain: bool = False


@dataclass(slots=True)
class Answer:
    """What is said of each sample, in columns; explained is None if that was not asked for."""

    seq: npt.NDArray[np.int64]
    score: npt.NDArray[np.float64]
    threshold: npt.NDArray[np.float64]
    is_anomaly: npt.NDArray[np.bool_]
    ready: npt.NDArray[np.bool_]
    samples_needed: int
    explained: list[Explained | None] | None = None
    features: Sequence[str] = ()
    as_of_seq: int = 0

    @classmethod
    def blank(cls, n: int) -> "Answer":
        """Give columns that say nothing yet."""
        nothing = np.full(n, np.nan)
        return cls(np.zeros(n, np.int64), nothing, nothing.copy(), np.zeros(n, np.bool_), np.zeros(n, np.bool_), 0)

    @classmethod
    def of(cls, records: Records) -> "Answer":
        """Give the columns of records."""
        columns = (records.seq, records.score, records.threshold, records.is_anomaly, records.ready)
        return cls(*columns, samples_needed=0)

    def put(self, rows: Rows, records: Records) -> None:
        """Fill in what was said of these rows."""
        self.seq[rows], self.score[rows], self.threshold[rows] = records.seq, records.score, records.threshold
        self.is_anomaly[rows], self.ready[rows] = records.is_anomaly, records.ready


async def observe(session: Session, batch: Batch, allowance: Allowance = UNLIMITED) -> Answer:
    """Answer a batch and learn what is new in it; the session's lock is held."""
    try:
        state = await state_for(session, batch.samples, allowance)
        return await observe_in(session, state, batch, allowance)
    finally:
        session.discard_unborn()


async def state_for(session: Session, samples: Samples, allowance: Allowance) -> StreamState:
    """Give the stream's state, or begin a stream that these samples describe."""
    try:
        return await session.state_to_change()
    except UnknownStream:
        if not (session.settings.auto_create and allowance.creates):
            raise
        return session.begin(samples.config(session.stream))


async def observe_in(session: Session, state: StreamState, batch: Batch, allowance: Allowance) -> Answer:
    """Answer a batch in an open stream."""
    X = matrix_of(session, batch, state.detector.config)
    await allowance.pay(len(X))
    known = await known_rows(session, state, batch.ids) if batch.ids else {}
    refuse_changed(X, batch.ids, known)
    if known:
        answer, explained = await complete(session, state, batch, X, known)
    else:
        records, explained = await learn(session, state, batch, X, allowance=allowance)
        answer = Answer.of(records)
    if batch.explain:
        answer.explained = [explained.get(seq) for seq in answer.seq.tolist()]
        answer.features = feature_names(state.detector.config)
    answer.samples_needed = state.detector.samples_needed
    return answer


async def complete(
    session: Session, state: StreamState, batch: Batch, X: Matrix, known: Mapping[int, Records]
) -> tuple[Answer, Mapping[int, Explained]]:
    """Answer known rows from their records, and learn the others; with what is explained, by seq."""
    new = np.array([row for row in range(len(X)) if row not in known], dtype=np.intp)
    answer = Answer.blank(len(X))
    for row, record in known.items():
        answer.put(np.array([row]), record)
    explained: dict[int, Explained] = {}
    if batch.explain:
        explained |= await session.ledger.first_explanations(int(record.seq[0]) for record in known.values())
    if len(new):
        records, newly = await learn(session, state, batch, X[new], new)
        answer.put(new, records)
        explained |= newly
    session.metrics.samples["repeated"].inc(len(known))
    return answer, explained


def matrix_of(session: Session, batch: Batch, config: DetectorConfig) -> Matrix:
    """Give the samples as a matrix, after what is cheaper to check."""
    n = batch.samples.count(config.n_features)
    refuse_beyond(session.settings.max_batch_samples, n, "samples", "ITAN_MAX_BATCH_SAMPLES")
    X = batch.samples.matrix(config)
    for field, column in (("ids", batch.ids), ("timestamps", batch.timestamps)):
        if column is not None and len(column) not in (0, n):
            raise InvalidIds(field, f"{len(column)} entries", f"as many as the samples, {n}")
    if batch.ids:
        refuse_doubled(batch.ids)
    return X


def refuse_doubled(ids: tuple[str, ...]) -> None:
    """Raise InvalidIds for an id that occurs twice in a batch."""
    given = [client_id for client_id in ids if client_id]
    if len(set(given)) < len(given):
        first: dict[str, int] = {}
        again = [i for i, client_id in enumerate(ids) if client_id and first.setdefault(client_id, i) != i]
        limit = "different from the ids before it in the batch"
        raise InvalidIds.of((Fault(f"ids[{i}]", ids[i], limit) for i in again), len(again))


async def known_rows(session: Session, state: StreamState, ids: tuple[str, ...]) -> dict[int, Records]:
    """Give the rows whose ids are known, each with its record."""
    seqs = await session.ledger.seqs(ids, state.horizon.oldest_seq)
    if not seqs:
        return {}
    records = await session.ledger.first_records(seqs.values())
    return {row: records[seqs[i]] for row, i in enumerate(ids) if i in seqs and seqs[i] in records}


def refuse_changed(X: Matrix, ids: tuple[str, ...], known: Mapping[int, Records]) -> None:
    """Raise IdConflict for an id that came with other values before."""
    if not known:
        return
    rows, first = np.array(list(known)), np.concatenate([record.x for record in known.values()])
    same = ((X[rows] == first) | (np.isnan(X[rows]) & np.isnan(first))).all(axis=1)
    if not same.all():
        changed = sorted(rows[~same].tolist())
        raise IdConflict.of((Fault(f"ids[{row}]", ids[row], IdConflict.LIMIT) for row in changed), len(changed))


async def learn(
    session: Session,
    state: StreamState,
    batch: Batch,
    X: Matrix,
    rows: Rows | None = None,
    allowance: Allowance = UNLIMITED,
) -> tuple[Records, Mapping[int, Explained]]:
    """Score and learn what is new of a batch, X in these rows or in all, and log it; with what is explained, by seq."""
    times = new_times(session, state, batch, len(X), rows)
    session.refuse_again()
    began = perf_counter()
    # an error in the first slice has changed nothing; from then on the engine is ahead of the log
    first, rest = (None, None) if times is None else (times[:FIRST_ROWS], times[FIRST_ROWS:])
    observed = [state.detector.observe(X[:FIRST_ROWS], first, explain=batch.explain)]
    seconds = perf_counter() - began
    with session.ahead_of_log():
        await session.bear(allowance.bounds)
        began = perf_counter() - seconds
        if len(X) > FIRST_ROWS:
            observed += await observe_slices(state.detector, X[FIRST_ROWS:], rest, explain=batch.explain)
        learned = Records.concatenate([out.records for out in observed]) if len(observed) > 1 else observed[0].records
        session.metrics.observe_steps["engine"].observe(perf_counter() - began)
        explained = explained_in(observed)
        ids = batch.ids if rows is None or not batch.ids else tuple(batch.ids[row] for row in rows)
        await log(session, state, learned, ids, batch_body(learned, times, session.clock.steady(), explained))
    state.newest_timestamp = newest(state.newest_timestamp, times)
    count_learned(session, state, learned)
    return learned, explained


def new_times(session: Session, state: StreamState, batch: Batch, n: int, rows: Rows | None) -> Times | None:
    """Give the times of the n new samples, checked; the present one where the model needs some and none were given."""
    now, uses_time = session.clock.now(), state.detector.config.half_life_seconds is not None
    if batch.timestamps is not None:
        rows = np.arange(n) if rows is None else rows
        allowance, newest = session.settings.timestamp_allowance_seconds, newest_by(state, now)
        return checked_times(batch.timestamps[rows], rows, newest, now, allowance, in_order=uses_time)
    return np.full(n, now) if uses_time else None


def newest_by(state: StreamState, now: float) -> float | None:
    """Give the newest time accepted, but none ahead of the clock: earlier versions took such."""
    return None if state.newest_timestamp is None else min(state.newest_timestamp, now)


async def log(session: Session, state: StreamState, learned: Records, ids: tuple[str, ...], body: bytes) -> None:
    """Append what was learned to the log."""
    seqs = learned.seq
    began = perf_counter()
    await session.append(state, Entry(Position(int(seqs[-1]), 0), body, int(seqs[0]), ids))
    session.metrics.observe_steps["append"].observe(perf_counter() - began)
