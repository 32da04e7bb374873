"""Scores without learning, the log density, and the description of a stream."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.storage import StoreUnavailable
from app.streams.allowance import UNLIMITED, Allowance
from app.streams.batches.answer import Answer
from app.streams.batches.batch import Batch
from app.streams.batches.features import feature_names
from app.streams.batches.samples import Matrix, Rows
from app.streams.batches.timestamps import Times, checked_times, given_times
from app.streams.log.explanations import explained_of
from app.streams.open.schedule import Period, in_periods
from app.streams.open.session import Session
from app.streams.slices import FIRST_ROWS, MAX_ROWS, isolated, slices
from app.streams.state.state import costs_of
from core import Detector, DetectorConfig


async def score(session: Session, batch: Batch, allowance: Allowance = UNLIMITED) -> Answer:
    """Score samples without learning them; there are no scores before the stream is ready."""
    detector = (await session.readable()).detector
    batch.refuse_other_calendar(session.stream, detector.config)
    X = batch.matrix(detector.config, session.settings.max_batch_samples)
    times = calendar_times(session, detector.config, batch, len(X))
    await allowance.pay(len(X))
    answer = Answer.blank(len(X))
    times_of = None if batch.timestamps is None else np.minimum(batch.timestamps, session.clock.now())
    held_out = in_periods(await known_periods(session), times_of, len(X), session.clock.now())
    if held_out is not None:
        answer.held_out = held_out
    answer.samples_needed, answer.as_of_seq = detector.samples_needed, detector.next_seq - 1
    if batch.explain:
        answer.explained, answer.features = [None] * len(X), feature_names(detector.config)
    if detector.ready:
        answer.threshold[:] = detector.threshold
        answer.ready[:] = True
        first = FIRST_ROWS if batch.explain else MAX_ROWS
        fixed = isolated(detector, len(X), first)
        async for part in slices(len(X), first):
            score_part(fixed, X, times, part, answer)
    session.metrics.samples["scored"].inc(len(X))
    return answer


async def known_periods(session: Session) -> Sequence[Period]:
    """Give when the stream is under maintenance; while the store is down nobody knows."""
    try:
        return await session.periods()
    except StoreUnavailable:
        return ()


def score_part(detector: Detector, X: Matrix, times: Times | None, part: slice, answer: Answer) -> None:
    """Score some of the samples, and explain those that are flagged."""
    answer.score[part] = detector.score(X[part], chosen(times, part))
    answer.severity[part] = detector.severity(answer.score[part])
    answer.is_anomaly[part] = answer.score[part] > answer.threshold[part]
    if answer.explained is not None:
        rows = part.start + np.flatnonzero(answer.is_anomaly[part])
        explanation = detector.explain(X[rows], chosen(times, rows))
        for row, explained in zip(rows, explained_of(explanation), strict=True):
            answer.explained[row] = explained


def calendar_times(session: Session, config: DetectorConfig, batch: Batch, n: int) -> Times | None:
    """Give the times of n samples that are not learned, as observe takes them; None without a calendar."""
    rows, allowance = np.arange(n), session.settings.timestamp_allowance_seconds
    times = given_times(batch.timestamps, rows, config)
    if times is None or config.calendar is None:
        return None
    return checked_times(times, rows, None, session.clock.now(), allowance, in_order=False)


def chosen(times: Times | None, rows: slice | Rows) -> Times | None:
    """Give some of the times, if there are any."""
    return None if times is None else times[rows]


async def log_density(session: Session, batch: Batch, allowance: Allowance = UNLIMITED) -> tuple[list[float], int]:
    """Give the log density at points, and the seq of the last sample in the model. Raises NotReady."""
    detector = (await session.readable()).detector
    X = batch.matrix(detector.config, session.settings.max_batch_samples)
    times = calendar_times(session, detector.config, batch, len(X))
    await allowance.pay(len(X))
    as_of_seq = detector.next_seq - 1
    fixed = isolated(detector, len(X), MAX_ROWS)
    log_densities = [fixed.log_density(X[part], chosen(times, part)) async for part in slices(len(X), MAX_ROWS)]
    return np.concatenate(log_densities).tolist(), as_of_seq


async def describe(session: Session) -> dict[str, Any]:
    """Describe a stream: its config and its state."""
    state = await session.readable()
    detector, now = state.detector, session.clock.now()
    return {
        "stream": session.stream,
        "config": detector.config.to_dict(),
        "n_seen": detector.n_seen,
        "next_seq": detector.next_seq,
        "as_of_seq": detector.next_seq - 1,
        "oldest_seq": session.oldest_to_label(state),
        "newest_timestamp": state.newest_timestamp,
        "in_maintenance": in_periods(await known_periods(session), None, 1, now) is not None,
        "ready": detector.ready,
        "samples_needed": detector.samples_needed,
        "threshold": detector.threshold,
        "incident": detector.incident or None,
        "incidents": detector.n_incidents,
        "costs": costs_of(detector),
        "replay_mismatches": state.replay_mismatches,
        "rebuilt": state.rebuilt,
        "snapshot_failure": state.snapshot_failure,
        "memory_bytes": state.memory_bytes(),
        "storage": await storage(session),
    }


async def storage(session: Session) -> dict[str, int] | None:
    """Give how much the store holds of a stream; None while the store is down."""
    try:
        size = await session.store.size(session.stream)
    except StoreUnavailable:
        return None
    return {
        "log_entries": size.log_entries,
        "log_bytes": size.log_bytes,
        "snapshot_bytes": size.snapshot_bytes,
    }
