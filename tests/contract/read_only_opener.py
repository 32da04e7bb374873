"""A process that opens an SQLite store as a user without rights, and prints what comes of it."""

import asyncio
import os
import sys
from pathlib import Path

from app.storage import StoreUnavailable
from app.storage.sqlite import SqliteStore


async def try_to_open(path: str) -> str:
    store = SqliteStore(Path(path))
    try:
        await store.open()
    except StoreUnavailable as error:
        return f"unavailable: {error}"
    await store.close()
    return "opened"


if __name__ == "__main__":
    if os.geteuid() == 0:  # root may write everything
        os.setuid(65534)
    print(asyncio.run(try_to_open(sys.argv[1])))
