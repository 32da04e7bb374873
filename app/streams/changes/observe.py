"""Observing a batch: known ids are answered again, new samples are scored, learned and logged."""

from collections.abc import Mapping
from time import perf_counter

import numpy as np

from app.storage import Entry, Position
from app.streams.allowance import UNLIMITED, Allowance
from app.streams.batches.answer import Answer
from app.streams.batches.batch import Batch
from app.streams.batches.samples import Matrix, Rows, Samples, feature_names
from app.streams.batches.timestamps import Times, checked_times
from app.streams.changes.metrics import count_learned
from app.streams.errors import IdConflict, UnknownStream
from app.streams.faults import Fault
from app.streams.log.events import batch_body
from app.streams.log.explanations import Explained, explained_in
from app.streams.open.replay import newest
from app.streams.open.session import Session
from app.streams.open.state import StreamState
from app.streams.slices import FIRST_ROWS, observe_slices
from core import Records


async def observe(session: Session, batch: Batch, allowance: Allowance = UNLIMITED) -> Answer:
    """Answer a batch and learn what is new in it; the session's lock is held."""
    try:
        state = await state_for(session, batch.samples, allowance)
        return await observe_in(session, state, batch, allowance)
    finally:
        session.discard_if_pending()


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
    X = batch.matrix(state.detector.config, session.settings.max_batch_samples)
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
        explained |= await session.log.original_explanations(int(record.seq[0]) for record in known.values())
    if len(new):
        records, newly = await learn(session, state, batch, X[new], new)
        answer.put(new, records)
        explained |= newly
    session.metrics.samples["repeated"].inc(len(known))
    return answer, explained


async def known_rows(session: Session, state: StreamState, ids: tuple[str, ...]) -> dict[int, Records]:
    """Give the rows whose ids are known, each with its record."""
    seqs = await session.log.seqs(ids, state.horizon.oldest_seq)
    if not seqs:
        return {}
    records = await session.log.original_records(seqs.values())
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
        await session.create_if_pending(allowance.bounds)
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
