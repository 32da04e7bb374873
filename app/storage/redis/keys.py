"""The names of the keys in Redis. The braces put all keys of a stream in one slot of a Cluster."""

from typing import NamedTuple

from app.storage.interface import DocumentKind

PREFIX = "itan:1:"
# A sorted set of all stream names, each with score 0, so that they can be listed in order, page by page.
STREAMS = f"{PREFIX}streams"
# Sorted sets too: the places of all incidents, and the marks of changed ones. They lie in slots of their own, so what
# is in them is written before the append, and may be there though the append failed.
INCIDENTS = f"{PREFIX}incidents"
CHANGES = f"{PREFIX}incident_changes"
# A hash of the summaries of all streams by name, each after the token of its writer: read together, so in one slot.
SUMMARIES = f"{PREFIX}summaries"


def documents_key(kind: DocumentKind) -> str:
    """Name the hash of all documents of a kind by name."""
    return f"{PREFIX}{kind}s"


def wanted_key(owner: str) -> str:
    """Name the set of the streams that others have asked a worker for."""
    return f"{PREFIX}wanted:{owner}"


class StreamKeys(NamedTuple):
    """The keys of one stream, in the order in which every script takes them."""

    meta: str
    snapshot: str
    log: str
    ids: str
    labels: str
    lease: str
    base: str
    incidents: str
    files: str
    file_ids: str
    blocks: str
    buckets: str


TYPES = StreamKeys(
    *["hash", "string", "stream", "hash", "hash", "hash", "string", "hash", "hash", "hash", "stream", "hash"]
)
PARTS = ("meta", "snap", "log", "ids", "labels", "lease", "base", "incidents", "files", "file_ids", "blocks", "buckets")


def stream_keys(stream: str) -> StreamKeys:
    """Name the keys of a stream."""
    own = f"{PREFIX}{{{stream}}}:"
    return StreamKeys._make([own + part for part in PARTS])


def fence_keys(stream: str) -> tuple[str, str]:
    """Name the keys that show who may write a stream: its meta and its lease."""
    own = f"{PREFIX}{{{stream}}}:"
    return own + "meta", own + "lease"
