"""Observing a batch: known ids are answered from the log, new samples are scored, learned and logged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter, thread_time

import numpy as np

from app.storage import Entry
from app.streams.allowance import UNLIMITED, Allowance
from app.streams.batches.answer import Answer
from app.streams.batches.batch import Batch, NewRows
from app.streams.batches.features import feature_names
from app.streams.batches.timestamps import Times, checked_times, given_times
from app.streams.batches.undeclared import refuse_undeclared
from app.streams.changes.incidents import count_observed
from app.streams.changes.metrics import count_learned
from app.streams.changes.warm_start import first_detector
from app.streams.errors import UnknownStream
from app.streams.log.explanations import Explained, explained_in
from app.streams.log.incidents import Incident
from app.streams.open.schedule import in_periods
from app.streams.open.session import Session
from app.streams.slices import FIRST_ROWS, observe_slices, some
from app.streams.state.state import StreamState, first_state
from app.streams.state.steps import log_samples
from core import Records


@dataclass(frozen=True, slots=True)
class Learned:
    """The records of samples that were learned, and the explanations of those that were flagged, by seq."""

    records: Records
    explained: Mapping[int, Explained]


async def observe(session: Session, batch: Batch, allowance: Allowance = UNLIMITED) -> Answer:
    """Answer a batch and learn what is new in it. The session's lock is held."""
    state = await state_for(session, batch, allowance)
    batch.refuse_other_calendar(session.stream, state.detector.config)
    X = batch.matrix(state.detector.config, session.settings.max_batch_samples)
    await allowance.pay(len(X))
    known = await session.reader.original_rows(batch.ids, state.horizon.oldest_seq) if batch.ids else {}
    new = batch.new_rows(X, known)
    if known:
        answer, explanations = await complete(session, state, known, new)
    else:
        learned = await learn(session, state, new, allowance)
        answer, explanations = Answer.of(learned.records), learned.explained
    if new.explain:
        answer.explained = [explanations.get(seq) for seq in answer.seq.tolist()]
        answer.features = feature_names(state.detector.config)
    answer.samples_needed = state.detector.samples_needed
    return answer


async def state_for(session: Session, batch: Batch, allowance: Allowance) -> StreamState:
    """Give the stream's state, or the first state of a new stream that this batch describes."""
    try:
        return await session.state_to_change()
    except UnknownStream:
        if not (session.settings.auto_create and allowance.creates):
            raise
        defaults = await session.defaults()
        config = batch.config(session.stream, defaults.config)
        refuse_undeclared(*batch.samples.first(), batch.samples.field, session.clock.now())
        return first_state(await first_detector(session, config, defaults.warm_start))


async def complete(
    session: Session, state: StreamState, known: Mapping[int, Records], new: NewRows
) -> tuple[Answer, Mapping[int, Explained]]:
    """Answer known rows from their records, and learn the others; give the explanations by seq."""
    explained: dict[int, Explained] = {}
    if new.explain:
        explained |= await session.reader.original_explanations(int(record.seq[0]) for record in known.values())
    records = None
    if len(new.X):
        learned = await learn(session, state, new)
        records, explained = learned.records, explained | dict(learned.explained)
    session.metrics.samples["repeated"].inc(len(known))
    return Answer.merged(known, new.places, records), explained


async def learn(session: Session, state: StreamState, new: NewRows, allowance: Allowance = UNLIMITED) -> Learned:
    """Score, learn and log new samples."""
    times = accepted_times(session, state, new)
    session.backoff.check()
    held_out = in_periods(await session.periods(), times, len(new.X), session.clock.now())
    began, work_began = perf_counter(), thread_time()
    # an error in the first slice has changed nothing; from then on the engine is ahead of the log
    first, rest = slice(FIRST_ROWS), slice(FIRST_ROWS, None)
    observed = [
        state.detector.observe(new.X[first], some(times, first), held_out=some(held_out, first), explain=new.explain)
    ]
    seconds = perf_counter() - began
    state.note_work(thread_time() - work_began)
    if state.first_snapshot is not None:
        await session.create(state, allowance.bounds)
    with session.ahead_of_log():
        began = perf_counter() - seconds
        if len(new.X) > FIRST_ROWS:
            of_rest = some(times, rest), some(held_out, rest)
            observed += await observe_slices(
                state.detector,
                new.X[rest],
                of_rest[0],
                held_out=of_rest[1],
                explain=new.explain,
                note_work=state.note_work,
            )
        records = Records.joined([out.records for out in observed], state.detector.config.n_features)
        session.metrics.observe_steps["engine"].observe(perf_counter() - began)
        explained = explained_in(observed)
        entry, incidents = log_samples(state, records, new.ids, times, session.clock.steady(), explained)
        await log(session, state, entry, incidents)
    state.note_times(times)
    count_observed(session, state, records)
    count_learned(session, state, records)
    return Learned(records, explained)


def accepted_times(session: Session, state: StreamState, new: NewRows) -> Times | None:
    """Give the times of new samples, checked; the present time where the model needs one and none was sent."""
    config = state.detector.config
    now, uses_time = session.clock.now(), config.half_life_seconds is not None
    times = given_times(new.times, new.places, config)
    if times is not None:
        # earlier versions accepted times ahead of the clock
        newest = None if state.newest_timestamp is None else min(state.newest_timestamp, now)
        allowance = session.settings.timestamp_allowance_seconds
        return checked_times(times, new.places, newest, now, allowance, in_order=uses_time)
    return np.full(len(new.X), now) if uses_time else None


async def log(session: Session, state: StreamState, entry: Entry, incidents: Sequence[Incident]) -> None:
    """Append what was learned to the log."""
    began = perf_counter()
    await session.append(state, entry, incidents=incidents)
    session.metrics.observe_steps["append"].observe(perf_counter() - began)
