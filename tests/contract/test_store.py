"""What every store promises, told by examples that all of them must pass."""

import asyncio
import re
import time
from collections.abc import Awaitable

import pytest

from app.storage import (
    BASE_SAMPLES,
    MAX_SEQ,
    Append,
    Bound,
    Entry,
    Position,
    Remains,
    Snapshot,
    StaleWriter,
    StreamNotFound,
    StreamSize,
    TooManyStreams,
    open_store,
)
from app.storage.pages import PAGE_BYTES
from tests.contract.conftest import LASTING

START = Snapshot(Position(0, 0), b"start")
EVERY_BYTE = bytes(range(256)) + b"\r\n$5\r\n\x00"

PAGED_SIZES = [10, PAGE_BYTES // 2, PAGE_BYTES // 2, 10, 2 * PAGE_BYTES, PAGE_BYTES - 1, 1, 10]


def batch(first: int, last: int, body: bytes = b"", ids: tuple[str, ...] = ()) -> Entry:
    return Entry(Position(last, 0), body or b"batch %d" % last, first, ids)


def event(seq: int, sub: int) -> Entry:
    return Entry(Position(seq, sub), b"event %d-%d" % (seq, sub))


async def fill(store, stream: str, *entries: Entry) -> None:
    """Create a stream and append entries, each after the one before."""
    await store.create(stream, START)
    after = START.position
    for entry in entries:
        await store.append(stream, after, entry)
        after = entry.position


async def everything(store, stream: str) -> tuple:
    """All that a store gives away about a stream."""
    ids, seqs = [*"abcdefxyz"], range(1, 60)
    return (
        await store.load(stream),
        await store.entries(stream, Position(0, 0), 1000),
        (await store.find_ids(stream, ids)).seqs,
        await store.find_labels(stream, seqs),
        await store.size(stream),
    )


# create, load, delete, list


async def test_a_new_stream_stands_at_its_snapshot(store):
    assert await store.create("s", Snapshot(Position(7, 2), EVERY_BYTE))
    assert await store.load("s") == (Snapshot(Position(7, 2), EVERY_BYTE), Position(7, 2))
    assert await store.entries("s", Position(0, 0), 10) == []
    assert await store.size("s") == StreamSize(0, 0, len(EVERY_BYTE))


async def test_create_leaves_an_existing_stream_alone(store):
    await fill(store, "s", batch(1, 3))
    before = await everything(store, "s")
    assert not await store.create("s", START)
    assert not await store.create("s", Snapshot(Position(9, 0), b"other"))
    assert await everything(store, "s") == before


async def test_one_of_many_creators_wins(store):
    assert sorted(await asyncio.gather(*(store.create("s", START) for _ in range(10)))) == [False] * 9 + [True]


async def test_a_stream_that_does_not_exist(store):
    assert await store.load("s") is None
    assert await store.entries("s", Position(0, 0), 10) == []
    assert await store.entries_holding("s", [1]) == []
    assert (await store.find_ids("s", ["a"])).seqs == {}
    assert await store.find_labels("s", [1]) == {}
    assert await store.streams("", 10) == []
    assert not await store.delete("s")
    with pytest.raises(StreamNotFound):
        await store.size("s")
    with pytest.raises(StreamNotFound):
        await store.append("s", Position(0, 0), batch(1, 1))
    with pytest.raises(StreamNotFound):
        await store.save_snapshot("s", START, 0)
    with pytest.raises(StreamNotFound):
        await store.replace("s", Position(0, 0), Snapshot(Position(0, 1), b""))
    assert await store.load("s") is None


async def test_delete_forgets_everything_and_nothing_else(store):
    for stream in ("s", "t"):
        await fill(store, stream, batch(1, 2, ids=("a", "b")))
        await store.append(stream, Position(2, 0), event(2, 1), {1: b"label"})
    kept = await everything(store, "t")
    assert await store.delete("s")
    assert not await store.delete("s")
    assert await store.load("s") is None
    assert await store.create("s", START)
    assert await everything(store, "s") == ((START, START.position), [], {}, {}, StreamSize(0, 0, 5))
    await store.append("s", START.position, batch(1, 1))
    assert await everything(store, "t") == kept


async def test_streams_are_listed_in_order_and_by_pages(store):
    names = ["A.b", "Z", "a", "a-1", "a:1", "a_1", "b" * 128, "c"]
    for name in reversed(names):
        await store.create(name, START)
    assert await store.streams("", 100) == names
    assert await store.streams("", 3) == names[:3]
    assert await store.streams("a", 2) == names[3:5]
    assert await store.streams("aa", 100) == names[6:]
    assert await store.streams("c", 100) == []
    await store.delete("a")
    assert await store.streams("Z", 1) == ["a-1"]


def too_many(bound, count):
    return pytest.raises(TooManyStreams, match=f"there are {count} streams, but {re.escape(bound.text)}")


async def test_no_more_streams_are_created_than_a_bound_allows(store):
    every, of_a = Bound("", 4), Bound("a-", 2, "ci")
    for name in ("a", "a-1", "b", "a-2"):
        assert await store.create(name, START, 0, [every, of_a])
    with too_many(every, 4):
        await store.create("c", START, 0, [every])
    with too_many(of_a, 2):
        await store.create("a-3", START, 0, [of_a, every])
    assert not await store.create("a-1", START, 0, [every, of_a])  # there is one: it is no more than before
    assert await store.streams("", 10) == ["a", "a-1", "a-2", "b"]
    assert await store.load("a-3") is None
    await store.delete("a-1")
    assert await store.create("a-3", START, 0, [every, of_a])
    with too_many(Bound("a-", 0, "ci"), 2):
        await store.create("a-4", START, 0, [Bound("a-", 0, "ci")])


async def test_of_many_created_at_once_just_those_that_fit_are(store):
    async def create(number):
        try:
            return await store.create(f"s{number}", START, 0, [Bound("s", 7)])
        except TooManyStreams:
            return False

    assert sum(await asyncio.gather(*map(create, range(40)))) == 7
    assert len(await store.streams("", 100)) == 7


async def test_streams_are_counted_right_after_replacement_deletion_and_a_new_start(store):
    for name in ("s", "t", "u"):
        await store.create(name, START)
    await store.replace("s", START.position, Snapshot(Position(0, 1), b"other"))
    await store.delete("t")
    await store.close()
    await store.open()
    assert await store.create("v", START, 0, [Bound("", 3)])
    with too_many(Bound("", 3), 3):
        await store.create("w", START, 0, [Bound("", 3)])


# append


async def test_entries_come_back_as_they_went_in(store):
    log = [
        batch(1, 3, EVERY_BYTE, ("a", "", "ü\u4e2d\U0001f600 'quoted'\n\x00end")),
        event(3, 1),
        event(3, 2),
        batch(4, 4),
        Entry(Position(4, 1), b""),
    ]
    await fill(store, "s", *log)
    assert await store.entries("s", Position(0, 0), 100) == log
    assert await store.load("s") == (START, Position(4, 1))
    assert await store.size("s") == StreamSize(5, sum(len(entry.body) for entry in log), 5)
    assert (await store.find_ids("s", list(log[0].ids))).seqs == {"a": 1, log[0].ids[2]: 3}


async def test_entries_are_read_in_pages(store):
    log = [batch(seq, seq) for seq in range(1, 8)]
    await fill(store, "s", *log)
    assert await store.entries("s", Position(0, 0), 3) == log[:3]
    assert await store.entries("s", Position(3, 0), 3) == log[3:6]
    assert await store.entries("s", Position(5, 9), 3) == log[5:]
    assert await store.entries("s", Position(7, 0), 3) == []
    assert await store.entries("s", Position(0, 0), 0) == []
    for seq in range(8):
        assert await store.entries("s", Position.before(seq), 100) == [e for e in log if e.position.seq >= seq]


async def test_a_page_ends_with_the_entry_that_makes_it_full(store):
    sizes = PAGED_SIZES
    log = [batch(seq, seq, bytes(size)) for seq, size in enumerate(sizes, 1)]
    await fill(store, "s", *log)
    pages, after = [], Position(0, 0)
    while page := await store.entries("s", after, 100):
        pages.append([len(entry.body) for entry in page])
        after = page[-1].position
    assert pages == [sizes[:3], sizes[3:5], sizes[5:7], sizes[7:]]


async def test_batches_that_hold_samples_are_read_in_such_pages(store):
    sizes = PAGED_SIZES
    await fill(store, "s", *(batch(seq, seq, bytes(size)) for seq, size in enumerate(sizes, 1)))
    pages, wanted = [], list(range(1, 3_000))
    while page := await store.entries_holding("s", wanted):
        pages.append([len(entry.body) for entry in page])
        wanted = [seq for seq in wanted if seq > page[-1].position.seq]
    assert pages == [sizes[:3], sizes[3:5], sizes[5:7], sizes[7:]]


@pytest.mark.parametrize("after", [Position(0, 0), Position(3, 0), Position(3, 2), Position(9, 0)])
async def test_a_stale_writer_changes_nothing(store, after):
    await fill(store, "s", batch(1, 3, ids=("a", "b", "c")), event(3, 1))
    await store.append("s", Position(3, 1), event(3, 2), {1: b"old"})
    await store.append("s", Position(3, 2), event(3, 3), {2: b"old"})
    before = await everything(store, "s")
    with pytest.raises(StaleWriter) as caught:
        await store.append("s", after, batch(after.seq + 1, after.seq + 2, ids=("a", "x")), {1: b"new"})
    assert (caught.value.expected, caught.value.actual) == (after, Position(3, 3))
    assert await everything(store, "s") == before


async def test_a_repeated_append_is_taken_once(store):
    await fill(store, "s", batch(1, 2, ids=("a", "b")))
    for _ in range(3):
        await store.append("s", Position(2, 0), batch(3, 4, ids=("a", "d")), {1: b"label"})
    assert await store.entries("s", Position(2, 0), 9) == [batch(3, 4, ids=("a", "d"))]
    assert await store.size("s") == StreamSize(2, 14, 5)
    with pytest.raises(StaleWriter):
        await store.append("s", Position(2, 0), batch(3, 4, b"other body"))
    await store.append("s", Position(4, 0), batch(5, 5))
    with pytest.raises(StaleWriter):
        await store.append("s", Position(2, 0), batch(3, 4, ids=("a", "d")), {1: b"label"})


async def test_many_streams_are_appended_to_at_once_and_each_for_itself(store):
    for stream in ("fits", "named", "stale", "repeated"):
        await fill(store, stream, batch(1, 2))
    await store.append("repeated", Position(2, 0), batch(3, 3, b"again"))
    before = await everything(store, "stale")
    outcomes = await store.append_each(
        [
            Append("fits", Position(2, 0), batch(3, 3, EVERY_BYTE)),
            Append("stale", Position(1, 0), batch(2, 2, b"other", ids=("a",))),
            Append("missing", Position(2, 0), batch(3, 3)),
            Append("repeated", Position(2, 0), batch(3, 3, b"again")),
            Append("named", Position(2, 0), batch(3, 3, ids=("a",))),
        ]
    )
    assert [type(outcome) for outcome in outcomes] == [type(None), StaleWriter, StreamNotFound, type(None), type(None)]
    assert await store.entries("fits", Position(2, 0), 9) == [batch(3, 3, EVERY_BYTE)]
    assert await store.entries("repeated", Position(2, 0), 9) == [batch(3, 3, b"again")]
    assert (await store.find_ids("named", ["a"])).seqs == {"a": 3}
    assert await everything(store, "stale") == before
    assert await store.append_each([]) == []
    with pytest.raises(ValueError, match="does not follow"):
        await store.append_each(
            [Append("fits", Position(3, 0), batch(4, 4)), Append("named", START.position, event(9, 9))]
        )
    assert (await store.size("fits")).log_entries == 2


async def test_one_of_many_writers_wins_each_position(store):
    await store.create("s", START)
    for seq in range(5):
        outcomes = await asyncio.gather(
            *(store.append("s", Position(seq, 0), batch(seq + 1, seq + 1, b"by %d" % who)) for who in range(20)),
            return_exceptions=True,
        )
        winners = [who for who, outcome in enumerate(outcomes) if outcome is None]
        assert len(winners) == 1
        assert sum(isinstance(outcome, StaleWriter) for outcome in outcomes) == 19
        assert (await store.entries("s", Position(seq, 0), 9))[0].body == b"by %d" % winners[0]
    assert (await store.size("s")).log_entries == 5


async def test_streams_do_not_mix(store):
    names = [f"s{number}" for number in range(30)]
    await asyncio.gather(*(store.create(name, START) for name in names))
    await asyncio.gather(*(store.append(name, Position(0, 0), batch(1, 1, name.encode())) for name in names))
    for name in names:
        assert [entry.body for entry in await store.entries(name, Position(0, 0), 9)] == [name.encode()]


@pytest.mark.parametrize(
    ("entry", "labels"),
    [
        (batch(5, 6), {}),
        (batch(4, 3), {}),
        (Entry(Position(5, 1), b"", 4), {}),
        (event(3, 3), {}),
        (event(4, 1), {}),
        (batch(4, 5, ids=("a",)), {}),
        (Entry(Position(3, 2), b"", None, ("a",)), {}),
        (batch(4, MAX_SEQ + 1), {}),
        (event(3, 2), {0: b""}),
        (event(3, 2), {4: b""}),
        (event(3, 2), {2**70: b""}),
    ],
)
async def test_an_entry_that_cannot_be_right_is_refused(store, entry, labels):
    await fill(store, "s", batch(1, 3), event(3, 1))
    before = await everything(store, "s")
    with pytest.raises(ValueError, match=r"follow|ids|labels|outside"):
        await store.append("s", Position(3, 1), entry, labels)
    assert await everything(store, "s") == before


async def test_a_cancelled_append_never_answers_another_call(store):
    for stream in ("s", "t"):
        await store.create(stream, Snapshot(Position(0, 0), stream.encode()))
    for turn in range(50):
        head = (await store.load("t"))[1]
        calls = [
            asyncio.create_task(store.append("t", head, batch(head.seq + 1, head.seq + 1))),
            asyncio.create_task(store.load("t")),
            asyncio.create_task(store.find_ids("t", ["a"])),
        ]
        for _ in range(turn % 5):
            await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        assert (await store.load("s"))[0].body == b"s"
        assert await store.size("s") == StreamSize(0, 0, 1)
        await asyncio.gather(*calls, return_exceptions=True)
    log = await store.entries("t", Position(0, 0), 100)
    assert [entry.position.seq for entry in log] == list(range(1, len(log) + 1))


# ids, labels, batches that hold a sample


async def test_the_newest_sample_of_an_id_is_found(store):
    await fill(store, "s", batch(1, 3, ids=("a", "b", "a")), batch(4, 4), batch(5, 6, ids=("b", "")))
    assert (await store.find_ids("s", ["a", "b", "c", "", "a"])).seqs == {"a": 3, "b": 5}
    assert (await store.find_ids("s", [])).seqs == {}


async def test_many_ids_in_one_batch_and_one_question(store):
    ids = tuple(f"id-{number}" for number in range(12_000))
    await fill(store, "s", batch(1, len(ids), ids=ids))
    assert (await store.find_ids("s", [*ids, "other"])).seqs == {name: seq for seq, name in enumerate(ids, 1)}


async def test_the_newest_label_of_a_sample_is_found(store):
    await fill(store, "s", batch(1, 3))
    await store.append("s", Position(3, 0), event(3, 1), {1: b"one", 3: EVERY_BYTE})
    await store.append("s", Position(3, 1), event(3, 2), {1: b"two"})
    assert await store.find_labels("s", [1, 2, 3, 4]) == {1: b"two", 3: EVERY_BYTE}
    many = {seq: b"%d" % seq for seq in range(4, 12_004)}
    await store.append("s", Position(3, 2), batch(4, 12_003), many)
    assert await store.find_labels("s", list(many)) == many


async def test_batches_that_hold_samples(store):
    log = [batch(1, 1), batch(2, 11), event(11, 1), event(11, 2), batch(12, 111), batch(112, 113), event(113, 1)]
    await fill(store, "s", *log)
    one, ten, hundred, two = log[0], log[1], log[4], log[5]
    assert await store.entries_holding("s", [1]) == [one]
    assert await store.entries_holding("s", [11, 2, 5, 5]) == [ten]
    assert await store.entries_holding("s", [12]) == [hundred]
    assert await store.entries_holding("s", [113, 1, 50, 10]) == [one, ten, hundred, two]
    assert await store.entries_holding("s", range(1, 5000)) == [one, ten, hundred, two]
    assert await store.entries_holding("s", [0, 114, -1, 10**30, 2**63]) == []
    assert await store.entries_holding("s", []) == []


async def test_batches_are_found_behind_label_events_whose_batch_is_gone(store):
    await fill(store, "s", batch(1, 3), event(3, 1), event(3, 2), batch(4, 6))
    await store.save_snapshot("s", Snapshot(Position(3, 0), b""), 4)
    assert await store.entries("s", Position(0, 0), 1) == [event(3, 1)]
    assert await store.entries_holding("s", [2, 3]) == []
    assert await store.entries_holding("s", [1, 2, 5]) == [batch(4, 6)]


async def test_seqs_that_no_sample_can_have_are_unknown(store):
    await fill(store, "s", batch(1, 2))
    assert await store.find_labels("s", [-1, 0, 2**63, 10**30]) == {}


# snapshots and trimming


async def test_a_snapshot_replaces_an_older_one(store):
    await fill(store, "s", batch(1, 2), event(2, 1), batch(3, 4))
    for position in (Position(2, 0), Position(2, 1), Position(2, 1), Position(4, 0)):
        newer = Snapshot(position, b"at %d-%d" % position)
        await store.save_snapshot("s", newer, 0)
        assert await store.load("s") == (newer, Position(4, 0))
    with pytest.raises(StaleWriter):
        await store.save_snapshot("s", Snapshot(Position(2, 1), b"old"), 0)
    with pytest.raises(StaleWriter):
        await store.save_snapshot("s", Snapshot(Position(5, 0), b"beyond the log"), 0)
    assert await store.load("s") == (newer, Position(4, 0))
    assert (await store.size("s")).log_entries == 3


LOG = [batch(1, 3, ids=("a", "b", "c")), event(3, 1), batch(4, 6, ids=("d", "a", "")), event(6, 1), batch(7, 9)]
LABELS = {1: b"1", 3: b"3", 4: b"4", 6: b"6", 7: b"7"}


@pytest.mark.parametrize(
    ("at", "keep", "left", "ids", "labels"),
    [
        (Position(9, 0), -5, LOG, {"a": 5, "b": 2, "c": 3, "d": 4}, LABELS),
        (Position(9, 0), 0, LOG, {"a": 5, "b": 2, "c": 3, "d": 4}, LABELS),
        (Position(9, 0), 3, LOG, {"a": 5, "b": 2, "c": 3, "d": 4}, LABELS),
        (Position(9, 0), 4, LOG[2:], {"a": 5, "d": 4}, {4: b"4", 6: b"6", 7: b"7"}),
        (Position(9, 0), 6, LOG[2:], {"a": 5, "d": 4}, {4: b"4", 6: b"6", 7: b"7"}),
        (Position(9, 0), 7, LOG[4:], {}, {7: b"7"}),
        (Position(9, 0), 10, [], {}, {}),
        (Position(9, 0), 10**30, [], {}, {}),
        (Position(3, 0), 10, LOG[1:], {"a": 5, "d": 4}, {4: b"4", 6: b"6", 7: b"7"}),
        (Position(3, 1), 10, LOG[2:], {"a": 5, "d": 4}, {4: b"4", 6: b"6", 7: b"7"}),
        (Position(6, 0), 10, LOG[3:], {}, {7: b"7"}),
        (Position(6, 0), 5, LOG[2:], {"a": 5, "d": 4}, {4: b"4", 6: b"6", 7: b"7"}),
        (Position(0, 0), 10, LOG, {"a": 5, "b": 2, "c": 3, "d": 4}, LABELS),
    ],
)
async def test_trimming_is_exact_and_never_passes_the_snapshot(store, at, keep, left, ids, labels):
    await fill(store, "s", *LOG)
    await store.append("s", Position(9, 0), event(9, 1), LABELS)
    left = [*left, event(9, 1)]
    snapshot = Snapshot(at, b"snapshot")
    await store.save_snapshot("s", snapshot, keep)
    assert await everything(store, "s") == (
        (snapshot, Position(9, 1)),
        left,
        ids,
        labels,
        StreamSize(len(left), sum(len(entry.body) for entry in left), 8 + 8),
    )


async def test_a_log_trimmed_to_nothing_goes_on_at_its_head(store):
    await fill(store, "s", *LOG)
    await store.save_snapshot("s", Snapshot(Position(9, 0), b"all"), 10)
    assert await store.load("s") == (Snapshot(Position(9, 0), b"all"), Position(9, 0))
    with pytest.raises(StaleWriter):
        await store.append("s", Position(6, 1), batch(7, 9))
    await store.append("s", Position(9, 0), event(9, 1))
    await store.append("s", Position(9, 1), batch(10, 10))
    assert await store.entries("s", Position(0, 0), 9) == [event(9, 1), batch(10, 10)]
    assert await store.entries_holding("s", [9, 10]) == [batch(10, 10)]
    assert await store.load("s") == (Snapshot(Position(9, 0), b"all"), Position(10, 0))


async def test_trimming_takes_many_entries_and_big_ones(store):
    small = [batch(seq, seq, ids=(f"id {seq}",)) for seq in range(1, 601)]
    big = batch(601, 12_600, ids=tuple(f"id {seq}" for seq in range(601, 12_601)))
    await fill(store, "s", *small, big, batch(12_601, 12_601))
    await store.save_snapshot("s", Snapshot(Position(12_601, 0), b""), 12_601)
    assert await store.entries("s", Position(0, 0), 9) == [batch(12_601, 12_601)]
    assert (await store.find_ids("s", [f"id {seq}" for seq in range(1, 12_602)])).seqs == {}
    assert await store.load("s") == (Snapshot(Position(12_601, 0), b""), Position(12_601, 0))


# the base, and damage


async def based(store) -> tuple[Snapshot, list[Entry]]:
    """Give the base, and the log after it, which must lead to the head."""
    remains = await store.inspect("s")
    log = await store.entries("s", remains.base.position, 1000)
    position = remains.base.position
    for entry in log:
        assert entry.follows(position)
        position = entry.position
    assert position == remains.head
    return remains.base, log


async def test_a_young_stream_has_no_base(store):
    await fill(store, "s", *LOG)
    assert await store.inspect("s") == Remains(Position(9, 0), START, None)
    assert await store.inspect("t") is None


async def test_the_first_snapshot_is_the_base_until_the_log_is_trimmed_past_it(store):
    await fill(store, "s", *LOG)
    first, second, third = (Snapshot(Position(*at), b"at %d-%d" % at) for at in ((3, 1), (6, 0), (9, 0)))
    await store.save_snapshot("s", first, 0)
    assert await based(store) == (first, LOG[2:])
    await store.save_snapshot("s", second, 3)
    assert await based(store) == (first, LOG[2:])
    assert (await store.inspect("s")).snapshot == second
    await store.save_snapshot("s", third, 5)
    assert await based(store) == (third, [])
    assert (await store.inspect("s")).snapshot == third
    assert await store.entries("s", Position(0, 0), 9) == LOG[2:]


async def test_a_base_that_is_old_is_replaced(store):
    await fill(store, "s", batch(1, 5), batch(6, 5 + BASE_SAMPLES - 1), batch(5 + BASE_SAMPLES, 5 + BASE_SAMPLES))
    young, near, far = (Snapshot(Position(seq, 0), b"%d" % seq) for seq in (5, 4 + BASE_SAMPLES, 5 + BASE_SAMPLES))
    for snapshot, base in ((young, young), (near, young), (far, far)):
        await store.save_snapshot("s", snapshot, 0)
        assert (await based(store))[0] == base


async def test_a_base_can_be_asked_for(store):
    await fill(store, "s", *LOG)
    for position in (Position(3, 0), Position(6, 1), Position(6, 1)):
        snapshot = Snapshot(position, b"at %d-%d" % position)
        await store.save_snapshot("s", snapshot, 0, 0, as_base=True)
        assert await store.inspect("s") == Remains(Position(9, 0), snapshot, snapshot)


@pytest.mark.parametrize("verb", ["replace", "delete", "restore"])
async def test_no_base_outlives_its_log(store, verb):
    await fill(store, "s", *LOG)
    await store.save_snapshot("s", Snapshot(Position(9, 0), b"old"), 0)
    new = Snapshot(Position(9, 1), b"new")
    if verb == "delete":
        await store.delete("s")
        await store.create("s", new)
    else:
        await (store.restore("s", new) if verb == "restore" else store.replace("s", Position(9, 0), new))
    assert await everything(store, "s") == ((new, Position(9, 1)), [], {}, {}, StreamSize(0, 0, 3))
    assert await store.inspect("s") == Remains(Position(9, 1), new, None)
    assert await store.streams("", 9) == ["s"]


async def test_restore_begins_what_is_not_there(store):
    await store.restore("s", START)
    assert await store.load("s") == (START, START.position)
    assert await store.streams("", 9) == ["s"]


# replace


async def test_replace_clears_what_was_and_goes_on(store):
    await fill(store, "s", *LOG)
    await store.append("s", Position(9, 0), event(9, 1), LABELS)
    reset = Snapshot(Position(9, 2), b"reset")
    for _ in range(2):  # the second is the same call again
        await store.replace("s", Position(9, 1), reset)
    assert await everything(store, "s") == ((reset, Position(9, 2)), [], {}, {}, StreamSize(0, 0, 5))
    await store.append("s", Position(9, 2), event(9, 3))
    await store.append("s", Position(9, 3), batch(10, 11, ids=("a", "b")))
    assert await store.entries("s", Position(0, 0), 9) == [event(9, 3), batch(10, 11, ids=("a", "b"))]
    assert (await store.find_ids("s", ["a", "b", "c"])).seqs == {"a": 10, "b": 11}
    assert await store.streams("", 9) == ["s"]


async def test_replace_by_a_stale_writer_changes_nothing(store):
    await fill(store, "s", *LOG)
    before = await everything(store, "s")
    with pytest.raises(StaleWriter):
        await store.replace("s", Position(6, 1), Snapshot(Position(20, 0), b"import"))
    with pytest.raises(ValueError, match="later"):
        await store.replace("s", Position(9, 0), Snapshot(Position(9, 0), b"import"))
    assert await everything(store, "s") == before


@pytest.mark.parametrize("seq", [10**12, 10**15 + 1, MAX_SEQ - 4])
async def test_an_import_far_ahead_keeps_every_digit(store, seq):
    await fill(store, "s", batch(1, 1))
    far = Snapshot(Position(seq, 0), b"import")
    await store.replace("s", Position(1, 0), far)
    log = [batch(seq + 1, seq + 2, ids=("a", "b")), event(seq + 2, 1), batch(seq + 3, seq + 3, ids=("c",))]
    await store.append("s", far.position, log[0])
    await store.append("s", log[0].position, log[1], {seq + 1: b"label"})
    await store.append("s", log[1].position, log[2])
    assert (await store.find_ids("s", ["a", "b", "c"])).seqs == {"a": seq + 1, "b": seq + 2, "c": seq + 3}
    assert await store.find_labels("s", [seq, seq + 1]) == {seq + 1: b"label"}
    assert await store.entries_holding("s", [seq, seq + 1, seq + 3, seq + 4]) == [log[0], log[2]]
    await store.save_snapshot("s", Snapshot(Position(seq + 3, 0), b"new"), seq + 3)
    assert await store.entries("s", Position(0, 0), 9) == log[2:]
    assert (await store.find_ids("s", ["a", "b", "c"])).seqs == {"c": seq + 3}
    assert await store.find_labels("s", [seq + 1]) == {}
    assert await store.load("s") == (Snapshot(Position(seq + 3, 0), b"new"), Position(seq + 3, 0))


async def test_a_position_that_would_be_rounded_is_refused(store):
    with pytest.raises(ValueError, match="outside"):
        await store.create("s", Snapshot(Position(2**63, 0), b""))
    await store.create("s", START)
    with pytest.raises(ValueError, match="outside"):
        await store.replace("s", START.position, Snapshot(Position(MAX_SEQ + 1, 0), b""))
    with pytest.raises((ValueError, StaleWriter)):
        await store.save_snapshot("s", Snapshot(Position(2**70, 0), b""), 0)


# opening and closing


async def test_check_answers_with_warnings_in_words(store):
    assert all(isinstance(warning, str) and warning for warning in await store.check())


@pytest.mark.parametrize("store_url", LASTING, indirect=True)
async def test_what_was_stored_outlives_the_store(store_url):
    first = open_store(store_url)
    await first.open()
    await fill(first, "s", *LOG)
    before = await everything(first, "s")
    await first.close()
    second = open_store(store_url)
    await second.open()
    assert await everything(second, "s") == before
    assert await second.streams("", 9) == ["s"]
    await second.close()


async def test_it_says_how_long_a_stream_is_silent(store):
    async def seconds(name: str) -> float:
        return (await store.silences([name]))[name].seconds

    async def is_fresh(change: Awaitable[object]) -> None:
        """Make a change, since whose beginning the stream is not silent."""
        began = time.monotonic()
        await change
        assert await seconds("s") < time.monotonic() - began + 0.05

    for name in ("s", "t"):
        await store.create(name, Snapshot(Position(0, 0), b"start"), await store.acquire(name, "a", 60))
    await asyncio.sleep(0.1)
    token = await store.acquire("s", "a", 60)
    await store.append("s", Position(0, 0), Entry(Position(1, 0), b"body", 1), {}, token)
    silences = await store.silences(["t", "s", "unknown"])
    assert set(silences) == {"s", "t"}
    assert (silences["s"].log_entries, silences["t"].log_entries) == (1, 0)
    assert 0 <= silences["s"].seconds <= silences["t"].seconds - 0.09 < 30
    await asyncio.sleep(0.1)
    await store.save_snapshot("s", Snapshot(Position(1, 0), b"later"), 2, token)
    await store.load("s")
    assert await seconds("s") >= 0.09
    assert (await store.silences(["s"]))["s"].log_entries == 0
    await is_fresh(store.append("s", Position(1, 0), Entry(Position(1, 1), b"label"), {}, token))
    await asyncio.sleep(0.1)
    await is_fresh(store.replace("s", Position(1, 1), Snapshot(Position(1, 2), b"reset"), token))
    await store.delete("s", token)
    assert await store.silences(["s"]) == {}
    assert await store.silences([]) == {}
