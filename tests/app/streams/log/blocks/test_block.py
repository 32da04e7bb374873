"""Blocks give back the entries that were packed, and refuse bytes that are no block."""

from contextlib import suppress
from dataclasses import replace
from functools import cache

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.storage import Entry, Position
from app.streams.log.archive import archive
from app.streams.log.blocks import Block, container, pack, pack_in_turns, packing, unpack
from app.streams.log.blocks import block as block_module
from app.streams.log.blocks.columns import compressed
from app.streams.log.blocks.container import Columns, writing
from app.streams.log.blocks.steps import at_once
from app.streams.log.blocks.texts import Texts
from app.streams.log.events import UnreadableEvent, batch_body, read_batch, read_records
from app.streams.log.seen import Seen, seen_in
from app.streams.state import image
from app.streams.state.state import first_state
from core import Detector, DetectorConfig, Records
from tests.app.harness import turns_of_others
from tests.app.streams.log.blocks.lives import EVENTS, entries_of
from tests.effort import tries
from tests.golden.golden import FOLDER, read, versions

LIFE = entries_of(7, [*EVENTS, "labels"] * 6)


def n_raw(block: Block) -> int:
    """Count the entries that are kept as they are, without columns."""
    return int((block._entry("rows") == 0).sum())


@settings(max_examples=tries(40), deadline=None)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(EVENTS), min_size=1, max_size=40), st.data())
def test_a_log_comes_back_whole_and_in_parts(seed, events, data):
    entries = entries_of(seed, events)
    block = Block(pack(entries))
    assert block.entries(range(len(entries))) == entries
    assert n_raw(block) == events.count("config")
    chosen = data.draw(st.lists(st.integers(0, len(entries) - 1), max_size=5))
    assert block.entries(chosen) == [entries[i] for i in chosen]


def test_entries_are_found_by_position_and_by_sample():
    block = Block(pack(LIFE))
    assert [block.position(i) for i in range(len(block))] == [entry.position for entry in LIFE]
    for entry in LIFE:
        for position in (entry.position, Position(entry.position.seq, entry.position.sub + 1)):
            assert block.entries(block.after(position)) == [other for other in LIFE if other.position > position]
    last = LIFE[-1].position.seq
    for seqs in ([1], [2, 3, last], range(last + 5), [0, last + 1], []):
        held = [entry for entry in LIFE if any(entry.holds(seq) for seq in seqs)]
        assert block.entries(block.holding(seqs)) == held
        assert block.names(seqs) == {seq: name for entry in held for name, seq in entry.named_samples() if seq in seqs}


def same(a: Seen | None, b: Seen | None) -> bool:
    return (a is b is None) or all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def test_what_a_search_looks_at_is_read_without_the_values(monkeypatch):
    block = Block(pack(LIFE))
    for places in (range(len(LIFE)), range(3, 9), range(5, 6), range(4, 4)):
        assert same(block.seen(places), seen_in([LIFE[i] for i in places]))
    older = read(FOLDER / "4" / "default.msgpack").log()
    assert same(Block(pack(older)).seen(range(len(older))), seen_in(older))
    body, asked, read_column = pack(LIFE), [], Columns.read
    monkeypatch.setattr(Columns, "read", lambda self, name, *rest: asked.append(name) or read_column(self, name, *rest))
    assert Block(body).seen(range(len(LIFE))) is not None
    assert "row.incident" in asked
    assert not [name for name in asked if name.startswith(("row.x", "row.learned", "ids", "pieces"))]


def test_sides_of_nodes_come_back():
    X = np.random.default_rng(0).normal(size=(200, 2))
    records = Detector(DetectorConfig(n_features=2, profile="paper", learn_from="all")).observe(X).records
    parts = [records[i].compact() for i in range(len(records))]
    assert len({part.rows["left"].tobytes() for part in parts}) > 3
    entries = [Entry(Position(i, 0), batch_body(part, None, 9.0), i) for i, part in enumerate(parts, 1)]
    block = Block(pack(entries))
    assert block.entries(range(len(entries))) == entries
    assert n_raw(block) == 0


def test_entries_that_would_not_come_back_are_not_packed(monkeypatch):
    monkeypatch.setattr(Texts, "at", lambda self, places: ["other"] * len(places))
    with pytest.raises(ValueError, match="not give them back"):
        pack(LIFE)


@pytest.mark.parametrize("version", versions())
def test_entries_of_every_earlier_version_come_back(version):
    for path in (FOLDER / version).iterdir():
        entries = read(path).log()
        assert unpack(pack(entries)) == entries


def test_what_this_version_would_write_otherwise_comes_back_beside_the_rest():
    """Bodies of other versions, of no version, with damaged records, of another width, with odd ids and positions."""
    first = next(entry for entry in LIFE if entry.n_samples)
    event = read_batch(first.body)
    other = Detector(DetectorConfig(n_features=5)).observe(np.zeros((1, 5))).records
    odd = [
        replace(first, body=msgspec.msgpack.encode(msgspec.structs.replace(event, version=99))),
        replace(first, body=msgspec.msgpack.encode(msgspec.structs.replace(event, records=event.records[:-1] + b"x"))),
        replace(first, body=msgspec.msgpack.encode(msgspec.structs.replace(event, timestamps=bytes(16)))),
        replace(first, body=first.body + b"\0"),
        replace(first, body=b"", ids=()),
        replace(first, body=batch_body(read_records(event.records).renumbered(-10), None, 9.0)),
        replace(first, body=batch_body(other, None, 9.0)),
        Entry(Position(2**53 - 1, 2**53 - 1), LIFE[-1].body, None, ("", "7" * 25, "007", "a\0b\n٣", "x" * 300)),
    ]
    for entries in (odd, [*LIFE, *odd], [*odd, *LIFE]):
        assert unpack(pack(entries)) == entries


async def test_others_have_their_turn_while_a_block_is_packed():
    async with turns_of_others() as turns:
        assert await pack_in_turns(LIFE) == pack(LIFE)
    assert turns() > 30


@cache
def mature() -> Records:
    """Give records of eight noisy doubles."""
    X = np.random.default_rng(0).normal(size=(1000, 8))
    return Detector(DetectorConfig(n_features=8, max_nodes=1)).observe(X).records


@pytest.mark.parametrize("size", [1, 100])
def test_a_sample_of_eight_doubles_takes_less_than_80_bytes(size):
    records, random, at, entries = mature(), np.random.default_rng(1), 1.8e9, []
    for start in range(0, len(records), size):
        last = start + size
        at += 60.0 + random.normal() / 100
        ids = tuple(f"order-2026-11-29-{seq:08d}" for seq in range(start + 1, last + 1))
        entries.append(Entry(Position(last, 0), batch_body(records[start:last].compact(), None, at), start + 1, ids))
    body = pack(entries)
    print(f"{len(body) / len(records):.1f} bytes a sample")
    assert len(body) < 80 * len(records)
    assert unpack(body) == entries
    assert n_raw(Block(body)) == 0


def test_what_is_not_asked_for_is_not_decoded(monkeypatch):
    decoded: list[int] = []
    decode = container.decode
    monkeypatch.setattr(container, "decode", lambda column: decoded.append(column.n) or decode(column))
    body = pack(LIFE)
    decoded.clear()
    assert Block(body).holding([3])
    assert len(decoded) == 3


def test_every_flip_and_truncation_is_refused():
    body = pack(LIFE[:2])
    for i in range(len(body)):
        with pytest.raises(UnreadableEvent):
            unpack(body[:i])
        with pytest.raises(UnreadableEvent):
            unpack(body[:i] + bytes([body[i] ^ 0x20]) + body[i + 1 :])
    with pytest.raises(UnreadableEvent):
        unpack(LIFE[0].body)


def sealed(directory: dict, data: bytes = b"", version: int = 1, length: int | None = None) -> bytes:
    listed = msgspec.msgpack.encode(directory)
    packed = compressed(listed)
    length = len(listed) if length is None else length
    body = container._HEADER.pack(container.MAGIC, version, length, len(packed)) + packed + data
    return body + container._digest(body)


@pytest.mark.parametrize(
    "body",
    [
        sealed({}),
        sealed({}, version=2),
        sealed({}, b"more"),
        sealed({}, length=0),
        sealed({"entry.seq": (0, 1, 8, 7)}, bytes(8)),
        sealed({"entry.seq": (0, -1, 8, bytes(8))}),
        sealed({"entry.seq": (0, 1, 8, -1)}),
        sealed({"entry.seq": (9, 1, 8, bytes(8))}),
        sealed({"entry.seq": (2, 1, 8, bytes(8))}),
        sealed({"entry.seq": (0, 1, 3, bytes(3))}),
    ],
    ids=len,
)
def test_a_directory_that_does_not_fit_is_refused(body):
    with pytest.raises(UnreadableEvent):
        unpack(body)


@pytest.mark.parametrize(
    "body",
    [
        sealed({}, length=2**32 - 1),
        sealed({"more": (0, 1, 1, bytes(1 << 21))}),
        sealed({"entry.seq": (0, 2**40, 8, bytes(8))}),
        sealed({"entry.seq": (0, 2**62, 2**62, bytes(8))}),
    ],
    ids=len,
)
def test_what_would_take_gigabytes_is_refused(body):
    with pytest.raises(UnreadableEvent, match="would take more than"):
        unpack(body)


def test_a_block_of_more_entries_than_anybody_packs_is_refused_before_it_is_decoded(monkeypatch):
    forged = sealed({f"entry.{name}": (0, 2_800_000, 8, bytes(8)) for name in ("seq", "sub", "first")})
    monkeypatch.setattr(container, "decode", None)
    with pytest.raises(UnreadableEvent, match="2800000 entries, more than 16384"):
        Block(forged)


def test_a_block_of_millions_of_ids_is_refused(monkeypatch):
    body = pack(LIFE[:12])
    monkeypatch.setattr("app.streams.log.blocks.texts.MOST_TEXTS", sum(len(entry.ids) for entry in LIFE[:12]) - 1)
    with pytest.raises(UnreadableEvent, match="ids, more than"):
        unpack(body)


def test_no_writer_makes_blocks_of_too_many_entries(monkeypatch):
    log = LIFE[next(i for i, entry in enumerate(LIFE) if entry.n_samples) :]
    for module in (block_module, packing, image, archive):
        monkeypatch.setattr(module, "MOST_BLOCK_ENTRIES", 5)
    with pytest.raises(ValueError, match="6 entries are more than a block holds"):
        pack(log[:6])
    state = first_state(Detector(DetectorConfig(n_features=2)))
    assert [entry for part in image.image_of(state, log, {}, []).entries() for entry in part] == log
    blocks = list(archive.blocks_of(log))
    assert [entry for block in blocks for entry in block] == log
    assert max(map(len, blocks)) == 5


@pytest.mark.parametrize("name", ["pieces", "ids.heads"])
def test_bytes_that_many_entries_share_count_for_each(monkeypatch, name):
    columns = Columns(pack(LIFE[:12]))
    arrays = {name: columns.read(name, np.uint8) for name in columns}
    arrays["entry.piece"] = np.zeros(len(arrays["entry.piece"]), np.int64)
    arrays["ids.head"] = np.zeros(len(arrays["ids.head"]), np.int64)
    arrays[f"{name}.length"] = np.array([1 << 20] + [0] * 99)
    arrays[f"{name}.bytes"] = np.zeros(1 << 20, np.uint8)
    monkeypatch.setattr("app.streams.log.blocks.texts.MOST_BYTES", 4 << 20)
    with pytest.raises(UnreadableEvent, match=f"column {name} would take more than"):
        unpack(at_once(writing(arrays)))


def test_rows_of_all_widths_together_have_a_limit(monkeypatch):
    body = pack(LIFE)
    monkeypatch.setattr("app.streams.log.blocks.block.MOST_BYTES", 4_000)
    with pytest.raises(UnreadableEvent, match="rows would take more than"):
        unpack(body)


def test_ids_of_a_million_digits_are_refused():
    columns = Columns(pack(LIFE[:12]))
    arrays = {name: columns.read(name, np.uint8) for name in columns}
    arrays["ids.digits"] = np.full(len(arrays["ids.digits"]), 10**6)
    with pytest.raises(UnreadableEvent, match="out of range"):
        unpack(at_once(writing(arrays)))


@settings(max_examples=tries(100), deadline=None)
@given(st.data())
def test_a_block_with_one_column_mutated_is_refused_or_read(data):
    """Whoever can write a right checksum gets an error in words, or other entries, and never more."""
    columns = Columns(pack(LIFE[:12]))
    arrays = {name: columns.read(name, np.uint8) for name in columns}
    name = data.draw(st.sampled_from(sorted(arrays)))
    match data.draw(st.sampled_from(["drop", "cut", "zero", "byte"])):
        case "drop":
            del arrays[name]
        case "cut":
            arrays[name] = arrays[name][:-1]
        case "zero":
            arrays[name] = np.zeros_like(arrays[name])
        case "byte" if arrays[name].size:
            arrays[name] = arrays[name].copy()
            arrays[name].flat[data.draw(st.integers(0, arrays[name].size - 1))] = data.draw(st.integers(0, 255))
    body = at_once(writing(arrays))
    with suppress(UnreadableEvent):
        unpack(body)
    with suppress(UnreadableEvent):
        Block(body).names(range(50))
