"""Every store keeps documents of each kind, and knows nothing of what they hold."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from app.storage import DocumentKind, open_reader, open_store
from tests.contract.conftest import SERVED

EVERY_BYTE = bytes(range(256)) + b"\r\n$5\r\n\x00"
SOURCE = DocumentKind.SOURCE


@pytest.mark.parametrize("kind", DocumentKind)
async def test_a_document_is_kept_as_it_is(store, kind):
    assert await store.document(kind, "a") is None
    assert await store.put_document(kind, "a", EVERY_BYTE)
    assert await store.document(kind, "a") == EVERY_BYTE
    assert await store.put_document(kind, "a", b"other", EVERY_BYTE)
    assert await store.document(kind, "a") == b"other"


@pytest.mark.parametrize("expected", [None, b"", b"b", EVERY_BYTE])
async def test_nothing_changes_if_another_document_than_the_expected_one_is_there(store, expected):
    await store.put_document(SOURCE, "a", b"there")
    assert not await store.put_document(SOURCE, "a", b"new", expected)
    assert expected is None or not await store.delete_document(SOURCE, "a", expected)
    assert await store.documents(SOURCE) == {"a": b"there"}


async def test_nothing_is_kept_in_the_place_of_a_document_that_is_gone(store):
    assert not await store.put_document(SOURCE, "a", b"new", b"gone")
    assert not await store.put_document(SOURCE, "a", b"new", b"")
    assert await store.documents(SOURCE) == {}


async def test_a_change_that_is_sent_again_has_taken_effect(store):
    for expected in (None, b"1", None):
        assert await store.put_document(SOURCE, "a", b"1" if expected is None else b"2", expected)
        assert await store.put_document(SOURCE, "a", b"1" if expected is None else b"2", expected)
        if expected:
            for _ in range(2):
                assert await store.delete_document(SOURCE, "a", b"2")
            assert await store.documents(SOURCE) == {}


async def test_an_empty_document_is_one(store):
    assert await store.put_document(SOURCE, "a", b"")
    assert not await store.put_document(SOURCE, "a", b"new")
    assert await store.put_document(SOURCE, "a", b"new", b"")
    assert await store.document(SOURCE, "a") == b"new"


async def test_of_many_changes_at_once_one_is_made(store):
    await store.put_document(SOURCE, "a", b"old")
    made = await asyncio.gather(*(store.put_document(SOURCE, "a", b"%d" % i, b"old") for i in range(20)))
    assert made.count(True) == 1
    assert await store.document(SOURCE, "a") == b"%d" % made.index(True)


async def test_documents_are_read_in_order_and_can_be_deleted(store):
    for name in ("b", "a.1", "c"):
        await store.put_document(SOURCE, name, name.encode())
    assert list((await store.documents(SOURCE)).items()) == [("a.1", b"a.1"), ("b", b"b"), ("c", b"c")]
    assert await store.streams("", 10) == []
    assert await store.delete_document(SOURCE, "b", b"b")
    assert list(await store.documents(SOURCE)) == ["a.1", "c"]
    assert await store.document(SOURCE, "b") is None


async def test_documents_of_different_kinds_may_have_the_same_name(store):
    for kind in DocumentKind:
        assert await store.put_document(kind, "a", kind.encode())
    for kind in DocumentKind:
        assert await store.documents(kind) == {"a": kind.encode()}
        assert await store.delete_document(kind, "a", kind.encode())
        assert await store.documents(kind) == {}


async def test_documents_outlive_the_store(lasting_url):
    for expected in ({}, {"a": b"x"}):
        opened = open_store(lasting_url)
        await opened.open()
        assert await opened.documents(SOURCE) == expected
        await opened.put_document(SOURCE, "a", b"x")
        await opened.close()


def make_older(path, sources):
    """Turn a new file into one of an older version, in which sources had a table of their own, or none."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE documents")
        if sources is not None:
            connection.execute("CREATE TABLE sources (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID")
            connection.executemany("INSERT INTO sources VALUES (?, ?)", sources.items())


@pytest.mark.parametrize("sources", [None, {}, {"a": b"x", "b": EVERY_BYTE}])
async def test_an_older_file_keeps_its_sources(tmp_path, sources):
    path, url = tmp_path / "old.db", f"sqlite:///{tmp_path}/old.db"
    opened = open_store(url)
    await opened.open()
    await opened.close()
    make_older(path, sources)
    for make in (open_reader, open_store, open_reader, open_store):
        opened = make(url)
        await opened.open()
        assert await opened.documents(SOURCE) == (sources or {})
        assert await opened.document(SOURCE, "a") == (sources or {}).get("a")
        await opened.close()
    with closing(sqlite3.connect(path)) as connection:
        assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sources'").fetchone()


async def test_sources_that_an_older_version_kept_since_are_newer(tmp_path):
    path, url = tmp_path / "old.db", f"sqlite:///{tmp_path}/old.db"
    opened = open_store(url)
    await opened.open()
    await opened.put_document(SOURCE, "a", b"before")
    await opened.put_document(SOURCE, "b", b"kept")
    await opened.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE sources (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID")
        connection.execute("INSERT INTO sources VALUES ('a', x'6e6577')")
    opened = open_store(url)
    await opened.open()
    assert await opened.documents(SOURCE) == {"a": b"new", "b": b"kept"}
    await opened.close()


@pytest.mark.parametrize("store_url", SERVED, indirect=True)
async def test_redis_keeps_sources_where_older_versions_do(store_url):
    opened = open_store(store_url)
    await opened.open()
    await opened.put_document(SOURCE, "a", b"x")
    assert await opened._calls.send("HGET", "itan:1:sources", "a") == b"x"
    await opened.close()
