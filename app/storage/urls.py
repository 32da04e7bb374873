"""Opens the store that a URL names."""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from app.storage.interface import Durability, Store

if TYPE_CHECKING:
    from app.storage.sqlite import SqliteReader

SCHEMES = "memory://, sqlite:///file, redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://"


def open_store(url: str, durability: Durability = Durability.PROCESS) -> Store:
    """Make the store that a URL names; await its `open` before use.

    sqlite:///file is relative to the working directory, sqlite:////file is absolute. redis+sentinel://host:port,host:port/name
    asks these Sentinels for the primary of that name, redis+cluster://host:port,host:port these nodes for the others.
    The query of a Redis URL configures the connections: socket_timeout (seconds), max_connections, ...
    Raises ValueError for other URLs, and for a durability that the store cannot provide.
    """
    match _scheme(url):
        case "memory":
            return _open_memory(durability)
        case "sqlite":
            return _open_sqlite(url, durability)
        case "redis" | "rediss" | "unix" | "redis+sentinel" | "rediss+sentinel" | "redis+cluster" | "rediss+cluster":
            from app.storage.redis import RedisStore

            return RedisStore(url, durability)
        case scheme:
            raise ValueError(f"a store's URL begins with {SCHEMES}, not with {scheme + '://' if scheme else 'a name'}")


def open_reader(url: str) -> "Store | SqliteReader":
    """Make a reader of the store that a URL names, also while services use it. Raises ValueError for other URLs."""
    if _scheme(url) == "memory":
        raise ValueError("a memory store can only be read by its own process")
    if _scheme(url) == "sqlite":
        from app.storage.sqlite import SqliteReader

        return SqliteReader(_sqlite_path(url))
    return open_store(url)


def _scheme(url: str) -> str:
    scheme, found, _ = url.partition("://")
    return scheme.lower() if found else ""


def _open_memory(durability: Durability) -> Store:
    from app.storage.memory import MemoryStore

    if durability is not Durability.PROCESS:
        raise ValueError(f"ITAN_DURABILITY={durability}: the memory store survives nothing")
    return MemoryStore()


def _open_sqlite(url: str, durability: Durability) -> Store:
    from app.storage.sqlite import SqliteStore

    path = _sqlite_path(url)
    if durability is Durability.REPLICAS:
        raise ValueError("ITAN_DURABILITY=replicas: an SQLite store has none, only process or fsync")
    return SqliteStore(path, durability=durability)


def _sqlite_path(url: str) -> Path:
    place = urlsplit(url)
    path = unquote(place.path.removeprefix("/"))
    if place.netloc or place.query or not path or path == ":memory:":
        raise ValueError("an SQLite store's URL is sqlite:///relative/file or sqlite:////absolute/file")
    return Path(path)
