"""Tells whether a stream has changed in the store."""

from hashlib import blake2b

from app.storage import Snapshot, Store, StoreCorrupt


async def fingerprint(store: Store, stream: str) -> object:
    """Give a value that differs once anything of a stream has changed in the store."""
    try:
        remains = await store.inspect(stream)
    except StoreCorrupt as error:
        return str(error)
    return remains and (remains.head, snapshot_digest(remains.snapshot), snapshot_digest(remains.base), remains.faults)


def snapshot_digest(snapshot: Snapshot | None) -> object:
    """Give a few bytes that tell a snapshot from others."""
    return snapshot and (snapshot.position, blake2b(snapshot.body, digest_size=16).digest())
