"""Every store keeps sources, and knows nothing of what they hold."""

import sqlite3
from contextlib import closing

from app.storage import open_reader, open_store

EVERY_BYTE = bytes(range(256)) + b"\r\n$5\r\n\x00"


async def test_a_source_is_kept_as_it_is(store):
    assert await store.source("a") is None
    assert await store.put_source("a", EVERY_BYTE)
    assert await store.source("a") == EVERY_BYTE
    assert not await store.put_source("a", b"other")
    assert await store.source("a") == b"other"
    assert not await store.put_source("a", b"other")


async def test_sources_are_listed_in_order_and_can_be_deleted(store):
    for name in ("b", "a.1", "c"):
        await store.put_source(name, b"x")
    assert await store.sources() == ["a.1", "b", "c"]
    assert await store.streams("", 10) == []
    assert await store.delete_source("b")
    assert not await store.delete_source("b")
    assert await store.sources() == ["a.1", "c"]
    assert await store.source("b") is None


async def test_sources_outlive_the_store(lasting_url):
    for expected in ([], ["a"]):
        opened = open_store(lasting_url)
        await opened.open()
        assert await opened.sources() == expected
        await opened.put_source("a", b"x")
        await opened.close()


async def test_a_file_of_before_there_were_sources_has_none(tmp_path):
    path, url = tmp_path / "old.db", f"sqlite:///{tmp_path}/old.db"
    opened = open_store(url)
    await opened.open()
    await opened.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE sources")
    for make in (open_reader, open_store):
        opened = make(url)
        await opened.open()
        assert (await opened.sources(), await opened.source("a")) == ([], None)
        await opened.close()
