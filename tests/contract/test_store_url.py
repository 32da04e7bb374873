"""Which store a URL means."""

from pathlib import Path

import pytest

from app.storage import open_store
from app.storage.memory import MemoryStore
from app.storage.redis import RedisStore
from app.storage.sqlite import SqliteStore


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("memory://", MemoryStore),
        ("redis://127.0.0.1:6379/3?socket_timeout=0.5", RedisStore),
        ("rediss://user:word@host", RedisStore),
        ("unix:///run/redis.sock", RedisStore),
    ],
)
def test_schemes(url, kind):
    assert isinstance(open_store(url), kind)


@pytest.mark.parametrize(
    ("url", "path"), [("sqlite:///itan.db", "itan.db"), ("sqlite:////var/lib/my%20itan.db", "/var/lib/my itan.db")]
)
def test_three_slashes_are_relative_four_absolute(url, path):
    store = open_store(url)
    assert isinstance(store, SqliteStore)
    assert store._path == Path(path)


@pytest.mark.parametrize(
    "url", ["", "itan.db", "postgres://host", "sqlite://", "sqlite:///", "sqlite://itan.db", "sqlite:///:memory:"]
)
def test_other_urls_are_refused(url):
    with pytest.raises(ValueError, match="URL"):
        open_store(url)
