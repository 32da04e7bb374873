"""The values of labels: all known beforehand, so that their series exist at 0 from the start."""

from typing import Final

import core

OTHER: Final = "other"
STATUS_CLASSES: Final = ("2xx", "3xx", "4xx", "5xx")
SAMPLE_OUTCOMES: Final = ("learned", "in_maintenance", "repeated", "scored")
LABEL_OUTCOMES: Final = (
    "applied",
    "duplicate",
    "revised",
    "withdrawn",
    "unknown",
    "expired",
    "conflict",
    "not_learned",
)
OBSERVE_STEPS: Final = ("decode", "engine", "append", "encode")
CELLS: Final = ("tp", "fp", "tn", "fn")
INCIDENT_EVENTS: Final = core.INCIDENT_EVENTS[1:]
MISMATCHES: Final = ("version", "other")
ARCHIVE_READS: Final = ("read", "cached", "missing", "failed")
STORE_ERRORS: Final = ("unavailable", "stale", "missing", "corrupt", "elsewhere", OTHER)
TRUTHS: Final = ("normal", "anomalous")
WRITE_REFUSALS: Final = ("unreachable", "full", "read_only", "locked", "failed", "replaced")
CLOSINGS: Final = ("room", "idle")
DELETIONS: Final = ("request", "silent")
LIMITS: Final = ("max_streams", "max_watchers", "streams", "bytes", "watchers", "requests", "samples")
CONNECTION_CLOSINGS: Final = (
    "invalid",
    "head",
    "slow_head",
    "slow_body",
    "unread",
    "idle",
    "room",
    "full",
    "bodies",
    "files",
)
FORWARDED: Final = ("answered", "failed")
NOTICE_OUTCOMES: Final = ("sent", "rejected", "expired")
LEASE_CHANGES: Final = ("acquired", "released", "lost", "refused", "handed_over")
