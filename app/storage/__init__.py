"""Where streams are kept: in memory, in an SQLite file, or in Redis."""

from app.storage.blocks import NO_BUCKETS, KnownIds, StoredBlock, bucket_of, split_from
from app.storage.bounds import NO_BOUNDS, Bound
from app.storage.errors import (
    ArchiveUnavailable,
    Cause,
    Fenced,
    LeaseHeld,
    StaleWriter,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
    StreamNotFound,
    TooManyStreams,
)
from app.storage.files import FileRow
from app.storage.incidents import (
    INCIDENTS_KEPT,
    MARKS_KEPT,
    NEW,
    NO_INCIDENTS,
    IncidentChange,
    IncidentKey,
    IncidentRow,
    Mark,
)
from app.storage.interface import NO_LABELS, Append, DocumentKind, Durability, Remains, Silence, Store, StreamSize
from app.storage.log import BASE_SAMPLES, MAX_SEQ, START, Entry, Position, Snapshot
from app.storage.pages import collect_batches, is_full, take_page
from app.storage.summaries import SummaryRow
from app.storage.urls import open_reader, open_store
from app.storage.usage import Usage

__all__ = [
    "BASE_SAMPLES",
    "INCIDENTS_KEPT",
    "MARKS_KEPT",
    "MAX_SEQ",
    "NEW",
    "NO_BOUNDS",
    "NO_BUCKETS",
    "NO_INCIDENTS",
    "NO_LABELS",
    "START",
    "Append",
    "ArchiveUnavailable",
    "Bound",
    "Cause",
    "DocumentKind",
    "Durability",
    "Entry",
    "Fenced",
    "FileRow",
    "IncidentChange",
    "IncidentKey",
    "IncidentRow",
    "KnownIds",
    "LeaseHeld",
    "Mark",
    "Position",
    "Remains",
    "Silence",
    "Snapshot",
    "StaleWriter",
    "Store",
    "StoreCorrupt",
    "StoreError",
    "StoreUnavailable",
    "StoredBlock",
    "StreamNotFound",
    "StreamSize",
    "SummaryRow",
    "TooManyStreams",
    "Usage",
    "bucket_of",
    "collect_batches",
    "is_full",
    "open_reader",
    "open_store",
    "split_from",
    "take_page",
]
