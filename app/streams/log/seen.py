"""What a search looks at in samples: when they came, and what was decided of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.storage import Entry
from app.streams.log.events import read_all_records, read_batch
from core import Records


class Seen(NamedTuple):
    """Columns (n,) of samples that follow each other: time is their timestamp, else their arrival `at`."""

    seq: npt.NDArray[np.int64]
    time: npt.NDArray[np.float64]
    at: npt.NDArray[np.float64]
    is_anomaly: npt.NDArray[np.bool_]
    incident: npt.NDArray[np.int64]
    held_out: npt.NDArray[np.bool_]


def seen_in(entries: Sequence[Entry]) -> Seen | None:
    """Give the samples of consecutive entries; None if there are none."""
    batches = [entry for entry in entries if entry.first_seq is not None]
    if not batches:
        return None
    events = [read_batch(entry.body) for entry in batches]
    records = read_all_records([event.records for event in events])
    return seen_of(records, np.repeat([event.at for event in events], [entry.n_samples for entry in batches]))


def seen_of(records: Records, at: npt.NDArray[np.float64]) -> Seen:
    """Give samples by their records and the times (n,) at which they came."""
    time = np.where(np.isnan(records.time), at, records.time)
    return Seen(records.seq, time, at, records.is_anomaly, records.incident, records.held_out)
