"""Every Prometheus metric of the service, in one place."""

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, Counter, disable_created_metrics

from app.metrics.known import (
    CELLS,
    CLOSINGS,
    CONNECTION_CLOSINGS,
    INCIDENT_EVENTS,
    LABEL_OUTCOMES,
    LEASE_CHANGES,
    LIMITS,
    MISMATCHES,
    NOTICE_OUTCOMES,
    OBSERVE_STEPS,
    OTHER,
    SAMPLE_OUTCOMES,
    STATUS_CLASSES,
    STORE_ERRORS,
    TRUTHS,
    WRITE_REFUSALS,
)
from app.metrics.metrics import Metrics
from app.metrics.view import EVERYTHING, NO_NAMES, View

# a time of creation for each counter would be as many series again, and nobody asks for them
disable_created_metrics()  # type: ignore[no-untyped-call] # it has no types

# the format of Metrics.text
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

__all__ = [
    "CELLS",
    "CLOSINGS",
    "CONNECTION_CLOSINGS",
    "CONTENT_TYPE",
    "EVERYTHING",
    "INCIDENT_EVENTS",
    "LABEL_OUTCOMES",
    "LEASE_CHANGES",
    "LIMITS",
    "MISMATCHES",
    "NOTICE_OUTCOMES",
    "NO_NAMES",
    "OBSERVE_STEPS",
    "OTHER",
    "SAMPLE_OUTCOMES",
    "STATUS_CLASSES",
    "STORE_ERRORS",
    "TRUTHS",
    "WRITE_REFUSALS",
    "Counter",
    "Metrics",
    "View",
]
