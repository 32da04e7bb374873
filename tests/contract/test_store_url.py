"""Which store a URL means."""

from pathlib import Path

import pytest

from app.storage import open_store
from app.storage.memory import MemoryStore
from app.storage.redis import RedisStore
from app.storage.redis.urls import read_hosts
from app.storage.sqlite import SqliteStore


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("memory://", MemoryStore),
        ("redis://127.0.0.1:6379/3?socket_timeout=0.5", RedisStore),
        ("rediss://user:word@host", RedisStore),
        ("unix:///run/redis.sock", RedisStore),
        ("redis+sentinel://user:word@a:26379,b/name/2?socket_timeout=0.5&sentinel_password=x", RedisStore),
        ("rediss+sentinel://[::1]:26379/name", RedisStore),
        ("redis+cluster://a:7000,b:7001", RedisStore),
        ("rediss+cluster://user:word@a", RedisStore),
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
    assert store.path == Path(path)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "itan.db",
        "postgres://host",
        "sqlite://",
        "sqlite:///",
        "sqlite://itan.db",
        "sqlite:///:memory:",
        "redis+sentinel://host:26379",
        "redis+sentinel:///name",
        "redis+cluster://a:1,,b:2",
        "redis+cluster://a:1/0",
        "redis+other://a",
    ],
)
def test_other_urls_are_refused(url):
    with pytest.raises(ValueError, match="URL"):
        open_store(url)


def test_what_stands_in_the_url_of_many_hosts():
    url = "rediss+sentinel://user:w%40rd@a:1,[::1]:2,c/name?socket_timeout=0.5&sentinel_password=x"
    assert open_store(url) is not None
    hosts, options = read_hosts(url, "rediss", 26379)
    assert hosts == [("a", 1), ("::1", 2), ("c", 26379)]
    given = {"username": "user", "password": "w@rd", "socket_timeout": 0.5, "sentinel_password": "x", "ssl": True}
    assert options.items() >= given.items()
