"""A process that appends batches to an SQLite store until it is killed, and prints each one that was acknowledged."""

import asyncio
import sys

from app.storage import Entry, Position, Snapshot, open_store


async def write(url: str) -> None:
    store = open_store(url)
    await store.open()
    await store.create("s", Snapshot(Position(0, 0), b"start"))
    loaded = await store.load("s")
    assert loaded is not None
    head = loaded[1]
    while True:
        entry = Entry(Position(head.seq + 3, 0), b"%d" % head.seq * 1000, head.seq + 1, (f"id {head.seq}", "", "x"))
        await store.append("s", head, entry)
        head = entry.position
        print(head.seq, flush=True)


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1]))
