"""Every store keeps an index of a stream's archived files, and the labels of archived samples."""

import pytest

from app.storage import Fenced, FileRow, Position, Snapshot, StreamNotFound
from tests.contract.test_store import EVERY_BYTE, START, batch, event, fill

FIRST, SECOND = FileRow(1, b"first", b"ids of it"), FileRow(2, EVERY_BYTE, EVERY_BYTE)
HEAD = Position(3, 1)


async def fill_labelled(store) -> None:
    """Make a stream of three batches, labels of 1 and 3 after them, and two files."""
    await fill(store, "s", *(batch(seq, seq) for seq in (1, 2, 3)))
    await store.append("s", Position(3, 0), event(3, 1), {1: b"old", 3: b"new"})
    await store.put_file("s", SECOND)
    await store.put_file("s", FIRST)


async def test_files_are_listed_in_order_and_their_ids_read_apart(store):
    await fill_labelled(store)
    assert await store.files("s") == [FIRST._replace(ids=b""), SECOND._replace(ids=b"")]
    assert await store.file_ids("s", [1, 2, 7]) == {1: FIRST.ids, 2: SECOND.ids}
    assert await store.files("none") == []
    assert await store.file_ids("none", [1]) == {}
    await store.put_file("s", FIRST._replace(body=b"again"))
    assert [row.body for row in await store.files("s")] == [b"again", SECOND.body]


async def test_labels_of_archived_samples_stay_until_their_files_go(store):
    await fill_labelled(store)
    await store.save_snapshot("s", Snapshot(HEAD, b"now"), 3, keep_labels=True)
    assert [entry.position.seq for entry in await store.entries("s", START.position, 9)] == [3, 3]
    assert await store.find_labels("s", [1, 2, 3]) == {1: b"old", 3: b"new"}
    await store.drop_files("s", 1)
    assert await store.files("s") == [SECOND._replace(ids=b"")]
    assert await store.file_ids("s", [1, 2]) == {2: SECOND.ids}
    assert await store.find_labels("s", [1, 2, 3]) == {3: b"new"}
    assert (await store.load("s"))[1] == HEAD, "the store still counts its labels rightly"


async def test_without_keeping_them_labels_go_with_their_samples(store):
    await fill_labelled(store)
    await store.save_snapshot("s", Snapshot(HEAD, b"now"), 3)
    assert await store.find_labels("s", [1, 2, 3]) == {3: b"new"}


async def test_a_file_may_bring_the_labels_of_its_samples(store):
    await fill(store, "s", batch(1, 3))
    many = {seq: b"label %d" % seq for seq in (1, 2)}
    await store.put_file("s", SECOND, labels=many)
    await store.put_file("s", SECOND, labels=many)
    assert await store.find_labels("s", [1, 2, 3]) == many
    assert list((await store.labels_until("s", 1)).items()) == [(1, b"label 1")]
    assert list(await store.labels_until("s", 9)) == [1, 2]
    assert await store.labels_until("none", 9) == {}
    assert (await store.load("s"))[1] == Position(3, 0)


@pytest.mark.parametrize("how", ["replace", "restore", "delete"])
async def test_a_stream_that_begins_anew_has_no_files(store, how):
    await fill_labelled(store)
    anew = Snapshot(Position(3, 2), b"anew")
    if how == "replace":
        await store.replace("s", HEAD, anew)
    elif how == "restore":
        await store.restore("s", anew)
    else:
        await store.delete("s")
        await store.create("s", anew)
    assert await store.files("s") == []
    assert await store.file_ids("s", [1, 2]) == {}


async def test_only_the_newest_writer_changes_the_index(store):
    if store.is_exclusive:
        return  # no other process can write
    token = await store.acquire("s", "a", 0.001)
    await store.create("s", START, token)
    await store.release({"s": token})
    await store.acquire("s", "b", 10)
    with pytest.raises(Fenced):
        await store.put_file("s", FIRST, token)
    with pytest.raises(Fenced):
        await store.drop_files("s", 1, token)
    assert await store.files("s") == []


async def test_there_are_no_files_without_a_stream(store):
    with pytest.raises(StreamNotFound):
        await store.put_file("none", FIRST)
    with pytest.raises(StreamNotFound):
        await store.drop_files("none", 1)
    with pytest.raises(ValueError, match="files end"):
        await store.put_file("none", FileRow(2**53, b""))
