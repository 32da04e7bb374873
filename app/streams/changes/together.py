"""Observing one record of each of many streams together: scored in one pass, and appended in one step of the store.

A record takes this way if nobody has to wait for its stream and nothing about it is unusual. Whatever is, also a fault,
is left to observe, which does or says what there is to do or say; until then nothing has changed.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter, thread_time

import numpy as np

import core
from app.storage import Append, Entry, StoreError
from app.streams.batches.answer import Answer
from app.streams.batches.batch import Batch, NewRows
from app.streams.batches.loose import LooseSamples
from app.streams.batches.records import Record, batch_of
from app.streams.batches.timestamps import Times
from app.streams.changes.incidents import count_observed
from app.streams.changes.metrics import count_learned_each
from app.streams.changes.observe import accepted_times
from app.streams.open.registry import Registry
from app.streams.open.schedule import Schedule, in_periods
from app.streams.open.session import Session
from app.streams.open.worker import Worker
from app.streams.state.state import StreamState
from app.streams.state.steps import log_samples
from core import Records


@dataclass(slots=True)
class Checked:
    """A record, the state that is to learn it, and how."""

    record: Record
    session: Session
    state: StreamState
    batch: Batch
    new: NewRows
    times: Times | None
    is_held_out: bool

    @property
    def time(self) -> float:
        """The time of the sample, NaN without one."""
        return np.nan if self.times is None else float(self.times[0])


Learned = Sequence[tuple[Checked, Records]]


@dataclass(slots=True)
class Together:
    """What became of the records that were observed together: answers for several of them, and failures."""

    answers: list[tuple[Sequence[Record], Answer]] = field(default_factory=list)
    failed: list[tuple[Record, Exception]] = field(default_factory=list)

    @property
    def streams(self) -> set[str]:
        """The streams whose records these are."""
        answered = {record.stream for records, _ in self.answers for record in records}
        return answered | {record.stream for record, _ in self.failed}


async def observe_together(registry: Registry, records: Mapping[str, Record]) -> Together:
    """Observe the records, by stream, that can be observed together."""
    try:
        schedule = await registry.worker.schedule()
    except StoreError:  # observe meets it again, and its caller tells of it
        return Together()
    async with registry.changing_idle(records) as sessions:
        known = await streams_that_know(sessions, records)
        new = (session for session in sessions if session.stream not in known)
        found = (checked(session, records[session.stream], schedule) for session in new)
        learned = learn(registry.worker, [one for one in found if one is not None])
        return await append(registry.worker, learned)


async def streams_that_know(sessions: Sequence[Session], records: Mapping[str, Record]) -> set[str]:
    """Give the streams that know the ids of their records, as far as that can be read."""
    asked = [session for session in sessions if records[session.stream].client_id]
    looks = [session.reader.seqs([records[session.stream].client_id], 0) for session in asked]
    found = await asyncio.gather(*looks, return_exceptions=True)
    return {session.stream for session, seqs in zip(asked, found, strict=True) if seqs}


def checked(session: Session, record: Record, schedule: Schedule) -> Checked | None:
    """Check a record as observe does; None if it has to say what is wrong."""
    state = session.current_state
    if state is None:
        return None
    try:
        batch = batch_of([record])
        X = batch.matrix(state.detector.config, session.settings.max_batch_samples)
        new = batch.new_rows(X, {})
        times = accepted_times(session, state, new)
        session.backoff.check()
    except Exception:  # observe meets it again, and its caller tells of it
        return None
    held_out = in_periods(schedule.of(session.stream), times, 1, session.clock.now())
    return Checked(record, session, state, batch, new, times, is_held_out=held_out is not None)


def learn(worker: Worker, found: Sequence[Checked]) -> Learned:
    """Score and learn the samples that can be learned together, and score those that are held out."""
    began, work_began = perf_counter(), thread_time()
    learning = [one for one in found if not one.is_held_out]
    times = np.array([one.time for one in learning])
    learned = core.observe_together([one.state.detector for one in learning], [one.new.X for one in learning], times)
    held_out = [(one, hold_out(one)) for one in found if one.is_held_out]
    seconds = thread_time() - work_began
    for one in found:
        one.state.note_work(seconds / len(found))
    worker.metrics.observe_steps["engine"].observe(perf_counter() - began)
    return [*((one, records) for one, records in zip(learning, learned, strict=True) if records is not None), *held_out]


def hold_out(one: Checked) -> Records:
    """Score a sample that is not learned."""
    return one.state.detector.observe(one.new.X, one.times, held_out=np.ones(1, np.bool_)).records


async def append(worker: Worker, learned: Learned) -> Together:
    """Log what was learned; only then is it answered."""
    began, told = perf_counter(), Together()
    try:
        appends = [append_of(one, records) for one, records in learned]
        outcomes = await worker.store.append_each(appends)
    except BaseException as error:
        for one, _ in learned:
            one.session.distrust(error)
        if not isinstance(error, Exception):
            raise
        told.failed = [(one.record, error) for one, _ in learned]
        return told
    worker.metrics.observe_steps["append"].observe(perf_counter() - began)
    kept = []
    for (one, records), appended, refusal in zip(learned, appends, outcomes, strict=True):
        if refusal is None:
            note_kept(one, appended.entry)
            kept.append((one, records))
        else:
            one.session.distrust(refusal)
            told.failed.append((one.record, refusal))
    for one, records in kept:
        count_observed(one.session, one.state, records)
    count_learned_each(worker.metrics, [(one.session, one.state, records) for one, records in kept])
    told.answers = answers_to(kept)
    return told


def append_of(one: Checked, learned: Records) -> Append:
    """Give what the store is to append for a sample."""
    entry, incidents = log_samples(one.state, learned, one.new.ids, one.times, one.session.clock.steady())
    return one.session.to_append(one.state, entry, incidents=incidents)


def note_kept(one: Checked, entry: Entry) -> None:
    """Take note that a sample is in the log."""
    one.session.note_appended(one.state, entry)
    one.state.note_times(one.times)
    if isinstance(one.batch.samples, LooseSamples) and one.batch.samples.ignored:
        one.session.metrics.ignored_values.inc(one.batch.samples.ignored)


def answers_to(kept: Learned) -> list[tuple[Sequence[Record], Answer]]:
    """Give an answer to the records of each width: rows of one type are put together fast."""
    alike: defaultdict[np.dtype, list[tuple[Record, Records]]] = defaultdict(list)
    for one, records in kept:
        alike[records.rows.dtype].append((one.record, records))
    found: list[tuple[Sequence[Record], Answer]] = []
    for kind, pairs in alike.items():
        # np.concatenate works out the common type of rows for each of them
        rows = np.frombuffer(b"".join(records.rows.tobytes() for _, records in pairs), kind)
        found.append(([record for record, _ in pairs], Answer.of(Records(rows))))
    return found
