"""Labels are told when they are due, however the rows arrive."""

import numpy as np
import pytest

from app.bulk.dues import Dues
from tests.bulk.samples import job_of, rows_of

N = 300


def naive(job, rows):
    """Tell, after each row, the labels that are due before the next one: the position of each, and after which row."""
    told, waiting, newest = [], [], -np.inf
    for position in range(1, N + 1):
        time = -np.inf if rows.times is None else rows.times[position - 1]
        newest = max(newest, time)
        if position > 1 and (position - 1) % job.label_every == 0:
            due = [one for one in waiting if is_due(job, one, position - 1, newest)]
            told += [(one[0], position - 1) for one in sorted(due, key=lambda one: (np.nan_to_num(one[1]), one[0]))]
            waiting = [one for one in waiting if one not in due]
        if rows.label[position - 1]:
            known = rows.known[position - 1]
            if np.isnan(known) and job.delay_seconds is not None:
                known = time + job.delay_seconds
            waiting.append((position, known))
    last = waiting if job.final_labels else [one for one in waiting if is_due(job, one, N, newest, is_end=True)]
    return told + [(one[0], N) for one in sorted(last, key=lambda one: (np.nan_to_num(one[1]), one[0]))]


def is_due(job, one, n, newest, *, is_end=False):
    position, known = one
    if np.isnan(known):
        return position + (job.delay_samples or 0) <= n
    return known <= newest if is_end else known < newest


CASES = {
    "at a time": (job_of(), {}),
    "late by samples": (job_of(delay_samples=37, label_every=1), {"known": False, "times": False}),
    "late by samples, now and then": (job_of(delay_samples=37, label_every=7), {"known": False, "times": False}),
    "late by seconds": (job_of(delay_seconds=600.0, label_every=3), {"known": False}),
    "only what is due": (job_of(delay_seconds=6000.0, final_labels=False), {"known": False}),
    "at once": (job_of(delay_samples=0, label_every=1, final_labels=False), {"known": False}),
}


@pytest.mark.parametrize("cuts", [1, 10, 64, N])
@pytest.mark.parametrize("case", CASES)
def test_each_label_is_told_when_it_is_due(case, cuts):
    job, of_rows = CASES[case]
    rows, dues, told, n = rows_of(n=N, **of_rows), Dues(job), [], 0
    for first in range(0, N, cuts):
        for due, part, own in dues.segments(rows[first : first + cuts]):
            told += [(one.position, n) for one in due]
            assert len(own) == np.count_nonzero(rows[first : first + cuts][part].label)
            n += part.stop - part.start
    told += [(one.position, N) for one in dues.rest()]
    assert told == naive(job, rows)
    assert len(told) > N / 10
