"""Import of an image: a new stream, once, with its log; whatever is wrong with it is refused and leaves nothing."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import msgspec
import pytest

from app.storage import Entry, IncidentRow, Position, StoreUnavailable
from app.storage.memory import MemoryStore
from app.streams.log.blocks import pack, unpack
from app.streams.log.events import read_event, read_records
from app.streams.state.image import READ_ENTRIES, Image
from core import Records
from tests.app.harness import DisturbedStore, Service, raising
from tests.bulk.samples import BYTES, N, backfilled, job_of, log_of, rows_of

PATH = "/streams/s/import"


@cache
def image(n: int = 400, keep: int = 100_000) -> bytes:
    return backfilled(job_of(keep_samples=keep), rows_of(n=n))[2]["image"]


async def test_an_image_is_imported_once():
    async with Service() as service:
        await service.accepted("PUT", PATH, content=image(), headers=BYTES)
        await service.observe([[0.0, 0.0, 0.0]], timestamps=[1_800_000_000.0])
        after = await service.export()
        await service.accepted("PUT", PATH, content=image(), headers=BYTES)
        assert await service.export() == after


def test_the_log_of_an_image_is_read_in_small_parts():
    body = backfilled(job_of(batch_size=1, keep_samples=400), rows_of(n=400))[2]["image"]
    parts = list(Image.from_bytes(body).entries())
    assert max(map(len, parts)) == READ_ENTRIES
    entries = [entry for part in parts for entry in part]
    assert entries == [entry for chunk in Image.from_bytes(body).chunks for entry in unpack(chunk)]


async def test_a_stream_of_another_origin_stays():
    async with Service() as service:
        await service.observe([[0.0, 0.0, 0.0]])
        before = await service.export()
        await service.refused("PUT", PATH, 409, "stream_exists", content=image(), headers=BYTES)
        assert await service.export() == before


async def test_an_import_that_was_cut_short_can_be_repeated():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        store.before["put_incidents"] = raising(StoreUnavailable("test"))
        await service.refused("PUT", PATH, 503, "store_unavailable", content=image(), headers=BYTES)
        service.clock.advance(60.0)
        await service.refused("GET", "/streams/s/export", 500, "store_corrupt")
        del store.before["put_incidents"]
        await service.accepted("PUT", PATH, content=image(), headers=BYTES)
        answer = await service.feedback({"id": "row-7", "anomaly": True})
        assert answer["outcome"] == ["applied"]
        checked = await service.accepted("GET", "/streams/s/check")
        assert checked["ok"], checked


async def test_samples_beyond_the_log_have_expired():
    async with Service() as service:
        await service.accepted("PUT", PATH, content=image(keep=100), headers=BYTES)
        answer = await service.feedback({"seq": 200, "anomaly": True}, {"id": "row-399", "anomaly": True})
        assert answer["outcome"] == ["expired", "applied"]
        assert 250 < answer["oldest_seq"] <= 301


async def test_a_key_s_bound_on_streams_holds(tmp_path):
    async with Service(max_streams=1) as service:
        await service.observe([[0.0]], "other")
        await service.refused("PUT", PATH, 429, "quota_exceeded", content=image(), headers=BYTES)
        assert not await service.store.load("s")


def relogged(change: Callable[[list[Entry]], object]) -> Callable[[Image], None]:
    """Change the log."""

    def do(image: Image) -> None:
        log = [entry for entries in image.entries() for entry in entries]
        change(log)
        image.chunks = [pack(log)]

    return do


def first(**fields: Any) -> Callable[[Image], None]:
    """Change the first entry."""
    return relogged(
        lambda log: log.__setitem__(0, replace(log[0], **{name: do(log[0]) for name, do in fields.items()}))
    )


def of_another_width(entry: Entry) -> bytes:
    event = read_event(entry.body)
    records = read_records(event.records)
    narrow = Records.of(1, records.x[:, :2], records.time)
    return msgspec.msgpack.encode(msgspec.structs.replace(event, records=narrow.to_bytes()))


def from_the_future(entry: Entry) -> bytes:
    return msgspec.msgpack.encode(msgspec.structs.replace(read_event(entry.body), at=1e12))


def at_time(time: float, *, is_told: bool = True) -> Callable[[Entry], bytes]:
    """Give a batch another time, in its records and beside them, or only there."""

    def do(entry: Entry) -> bytes:
        event = read_event(entry.body)
        records = read_records(event.records)
        rows = records.rows.copy()
        rows["time"] = time
        fields = {"timestamps": rows["time"].tobytes()} | ({"records": Records(rows).to_bytes()} if is_told else {})
        return msgspec.msgpack.encode(msgspec.structs.replace(event, **fields))

    return do


def timed_label(image: Image) -> None:
    """Give the record of a labelled sample another time."""
    seq, body = next(iter(image.labels.items()))
    rows = read_records(body).rows.copy()
    rows["time"] = 1e300
    image.labels[seq] = Records(rows).to_bytes()


FAULTS: dict[str, Callable[[Image], object]] = {
    "a gap": relogged(lambda log: log.pop(3)),
    "no end": relogged(lambda log: log.pop()),
    "no event": first(body=lambda entry: b""),
    "labels first": relogged(lambda log: log.insert(0, next(one for one in log if one.first_seq is None))),
    "ids of others": first(ids=lambda entry: ("x",)),
    "an id that no sample has": first(ids=lambda entry: ("a\nb", *entry.ids[1:])),
    "half of a surrogate pair": first(ids=lambda entry: ("\ud800", *entry.ids[1:])),
    "samples of long ago": first(body=at_time(0.0)),
    "samples of a far future": first(body=at_time(1e300)),
    "times of other samples": first(body=at_time(1.7e9, is_told=False)),
    "a labelled sample of a far future": timed_label,
    "another width": first(body=of_another_width),
    "another time": first(body=from_the_future),
    "no log": lambda image: image.chunks.clear(),
    "no chunk": lambda image: image.chunks.append(b"?"),
    "a label of nobody": lambda image: image.labels.update({1: next(iter(image.labels.values()))}),
    "no record": lambda image: image.labels.update(dict.fromkeys(image.labels, b"")),
    "an incident of nobody": lambda image: image.incidents.append(IncidentRow(7, 1, b"")),
    "an incident of tomorrow": lambda image: image.incidents.append(image.incidents[0]._replace(seq=N + 1)),
    "no state": lambda image: setattr(image, "state", b""),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_tampered_image_is_refused_and_leaves_nothing(fault):
    tampered = Image.from_bytes(image())
    FAULTS[fault](tampered)
    async with Service() as service:
        problem = await service.refused(
            "PUT", PATH, 422, "invalid_snapshot", content=tampered.to_bytes(), headers=BYTES
        )
        assert problem["detail"]
        await service.refused("GET", "/streams/s", 404, "unknown_stream")


@pytest.mark.parametrize("cut", [11, 100, -1])
async def test_a_damaged_image_is_refused(cut):
    async with Service() as service:
        await service.refused("PUT", PATH, 422, "invalid_snapshot", content=image()[:cut], headers=BYTES)


def test_an_image_comes_back():
    again = Image.from_bytes(image())
    assert again.to_bytes() == image()
    assert log_of(image())[-1].position == Position(400, log_of(image())[-1].position.sub)
