"""Where streams are kept: in memory, in an SQLite file, or in Redis."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from app.storage.base import Store

SCHEMES = "memory://, sqlite:///file, redis://, rediss:// or unix://"


def open_store(url: str) -> Store:
    """Make the store that a URL names; it holds nothing before its `open` is awaited.

    sqlite:///file is relative to the working directory, sqlite:////file is absolute. What follows "?" in the URL of a
    Redis server sets the connection: socket_timeout (seconds), max_connections, ... Raises ValueError for other URLs.
    """
    match urlsplit(url).scheme:
        case "memory":
            from app.storage.memory import MemoryStore

            return MemoryStore()
        case "sqlite":
            return _open_sqlite(url)
        case "redis" | "rediss" | "unix":
            from app.storage.redis import RedisStore

            return RedisStore(url)
        case scheme:
            raise ValueError(f"a store's URL begins with {SCHEMES}, not with {scheme + '://' if scheme else 'a name'}")


def _open_sqlite(url: str) -> Store:
    from app.storage.sqlite import SqliteStore

    place = urlsplit(url)
    path = unquote(place.path.removeprefix("/"))
    if place.netloc or place.query or not path or path == ":memory:":
        raise ValueError("an SQLite store's URL is sqlite:///relative/file or sqlite:////absolute/file")
    return SqliteStore(Path(path))
