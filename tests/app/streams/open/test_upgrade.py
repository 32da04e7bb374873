"""Streams of every earlier version: they go on as they were, or are refused by name."""

import struct

import msgspec
import numpy as np
import pytest

from app.storage.memory import MemoryStore
from app.streams.log.events import UnreadableEvent, read_event, read_records
from app.streams.state.state import StreamState
from core import InvalidSnapshot
from core.records.encoding import MAGIC as RECORDS_MAGIC
from core.snapshot import DIGEST_BYTES, MAGIC, digest
from tests.app.harness import Service
from tests.golden.generate import BATCHES, CONFIGS, times
from tests.golden.golden import Golden, path_of, read, versions

REFUSED: dict[str, str] = {"1": "its version is 1; this program reads versions 2, 3, 4, 5, 6 and 7"}
"""What is no longer read, by version, and what its refusal says: the one place that decides. All others must go on."""

DECIDED_OTHERWISE = ("2", "3", "4", "5")
"""Versions whose scores and labels are taken over, but by whose rules nothing is decided any more."""
LEARNED_OTHERWISE = ("2", "3", "4")
"""Those of them after which a sample may also be learned otherwise, and the next one scored otherwise."""
HAS_OTHER_RULES = ("default", "diagonal")
"""The streams that these rules are about; all others go on as before."""

GOLDEN = [(version, name) for version in versions() for name in CONFIGS if path_of(version, name).exists()]


def golden(version: str, name: str) -> Golden:
    return read(path_of(version, name))


async def stored(kept: Golden) -> MemoryStore:
    """Put a stream into a store as the earlier version left it."""
    store = MemoryStore()
    await store.create("s", kept.stored_snapshot())
    position = kept.stored_snapshot().position
    for entry in kept.log():
        await store.append("s", position, entry)
        position = entry.position
    store.stored["s"].labels.update(kept.labels)
    return store


def close(said: list, expected: list, within: float = 1e-9) -> None:
    """Compare with what the earlier version said, perhaps on another processor."""
    np.testing.assert_allclose(np.array(said, dtype=float), expected, rtol=1e-9, atol=within)


def test_every_version_is_decided_on():
    assert versions()
    assert set(REFUSED) <= set(versions())
    for version in versions():
        assert {name for of, name in GOLDEN if of == version} >= {"default", "paper", "warming"}


@pytest.mark.parametrize(("version", "name"), GOLDEN)
async def test_a_stream_of_an_earlier_version_goes_on_or_is_refused(version, name):
    kept = golden(version, name)
    if version in REFUSED:
        await refused(kept, REFUSED[version])
    else:
        is_of_others = name not in HAS_OTHER_RULES
        decides_as_before = is_of_others or version not in DECIDED_OTHERWISE
        learns_as_before = is_of_others or version not in LEARNED_OTHERWISE
        await goes_on(kept, decides_as_before=decides_as_before, learns_as_before=learns_as_before)


async def goes_on(kept: Golden, *, decides_as_before: bool, learns_as_before: bool) -> None:
    """Find the next samples scored as the earlier version scored them, and the samples before open to labels."""
    async with Service(await stored(kept)) as service:
        rows = [[None if np.isnan(x) else x for x in row] for row in kept.next_samples]
        start = sum(BATCHES)
        answer = await service.observe(rows, timestamps=times(start, start + len(rows)))
        close(answer["score"], kept.next_answers.score, within=1e-9 if learns_as_before else 1.0)
        if decides_as_before:
            assert answer["is_anomaly"] == kept.next_answers.is_anomaly
            close(answer["threshold"], kept.next_answers.threshold)
        mismatches = (await service.accepted("GET", "/streams/s"))["replay_mismatches"]
        assert mismatches["other"] == 0
        assert not (decides_as_before and mismatches["version"])
        answer = await service.feedback(
            {"seq": next(iter(kept.labels)), "anomaly": None}, {"id": "i90", "anomaly": True}
        )
        assert answer["outcome"][0] in ("withdrawn", "duplicate")
        assert answer["outcome"][1] == "applied"
        assert (await service.feedback({"id": "i90", "anomaly": True}))["outcome"] == ["duplicate"]


async def refused(kept: Golden, reason: str) -> None:
    """Find the stream refused, for reads and writes, with what the store holds unchanged."""
    store = await stored(kept)
    before = await store.load("s"), await store.size("s")
    async with Service(store) as service:
        for method, path, body in (("GET", "/streams/s", None), ("POST", "/observe?stream=s", {"samples": [[1.0]]})):
            problem = await service.refused(method, path, 500, "store_corrupt", json=body)
            assert reason in problem["detail"]
    assert (await store.load("s"), await store.size("s")) == before


async def test_a_newer_snapshot_is_refused_and_stays_as_it_is():
    kept = golden(*GOLDEN[-1])
    kept.snapshot = of_version(kept.snapshot, 99)
    with pytest.raises(InvalidSnapshot, match="version is 99"):
        StreamState.from_bytes(kept.snapshot, kept.stored_snapshot().position)
    await refused(kept, "its version is 99; this program reads version")


async def test_a_newer_engine_is_refused_and_stays_as_it_is():
    kept = golden(*GOLDEN[-1])
    start = kept.snapshot.index(MAGIC, len(MAGIC))
    engine = of_version(kept.snapshot[start:-DIGEST_BYTES], 99)
    body = kept.snapshot[:start] + engine
    # the length of the engine stands in the header of what holds it
    body = resized(body, len(kept.snapshot) - DIGEST_BYTES - start, len(engine))
    kept.snapshot = body + digest(body)
    await refused(kept, "its version is 99; this program reads version")


async def test_a_newer_log_is_refused_and_stays_as_it_is():
    kept = golden(*GOLDEN[-1])
    at, body, first, ids = kept.entries[0]
    newer = msgspec.msgpack.encode(msgspec.structs.replace(read_event(body), version=99))
    with pytest.raises(UnreadableEvent, match="version 99"):
        read_event(newer)
    kept.entries[0] = (at, newer, first, ids)
    await refused(kept, "an event has version 99")


def test_newer_records_are_refused():
    blob = next(iter(golden(*GOLDEN[-1]).labels.values()))
    body = RECORDS_MAGIC + struct.pack("<H", 99) + blob[len(RECORDS_MAGIC) + 2 : -DIGEST_BYTES]
    with pytest.raises(UnreadableEvent, match="version is 99"):
        read_records(body + digest(body))


def of_version(blob: bytes, version: int) -> bytes:
    """Give a snapshot another version."""
    header, rest = split(blob[:-DIGEST_BYTES])
    return sealed(header | {"version": version}, rest)


def resized(body: bytes, old: int, new: int) -> bytes:
    """Give the only array of a snapshot another length, without its checksum."""
    header, rest = split(body)
    assert header["arrays"] == [["engine", "|u1", [old]]]
    return sealed(header | {"arrays": [["engine", "|u1", [new]]]}, rest)[:-DIGEST_BYTES]


def split(body: bytes) -> tuple[dict, bytes]:
    """Take the header out of a snapshot."""
    start = len(MAGIC) + 4
    (length,) = struct.unpack("<I", body[len(MAGIC) : start])
    return msgspec.json.decode(body[start : start + length]), body[start + length :]


def sealed(header: dict, rest: bytes) -> bytes:
    """Put a snapshot together."""
    text = msgspec.json.encode(header)
    body = MAGIC + struct.pack("<I", len(text)) + text + rest
    return body + digest(body)
