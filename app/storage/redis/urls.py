"""Reads the URL of a store in Redis: one server, Sentinels, or a Cluster."""

from typing import Any
from urllib.parse import urlsplit, urlunsplit

from redis.asyncio.connection import SSLConnection, parse_url

from app.storage.redis.cluster import Cluster
from app.storage.redis.servers import DEFAULTS, Servers
from app.storage.redis.single import OneServer, SentinelPrimary

PORTS = {"sentinel": 26379, "cluster": 6379}


def servers_of(url: str) -> Servers:
    """Give the servers that a URL names. Raises ValueError for a URL without a host."""
    scheme, _, kind = url.partition("://")[0].lower().partition("+")
    if not kind:
        return OneServer(url)
    hosts, options = read_hosts(url, scheme, PORTS[kind])
    service = urlsplit(split_hosts(url)[1]).path.strip("/")
    if kind == "cluster":
        if service:
            raise ValueError(f"a Cluster's URL is {scheme}+cluster://host:port,host:port, with no path")
        return Cluster(hosts, options)
    name, _, database = service.partition("/")
    if not name:
        raise ValueError(f"a Sentinel's URL is {scheme}+sentinel://host:port,host:port/name")
    return SentinelPrimary(hosts, name, options | {"db": int(database or 0)})


def read_hosts(url: str, scheme: str, default_port: int) -> tuple[list[tuple[str, int]], dict[str, Any]]:
    """Split a URL into the hosts and the options of the connections."""
    hosts, rest = split_hosts(url)
    addresses = [urlsplit(f"//{host}") for host in hosts.split(",")]
    if not all(address.hostname for address in addresses):
        raise ValueError(f"the URL of a store names a host:port before each comma, not {hosts!r}")
    place = urlsplit(rest)
    options: dict[str, Any] = dict(parse_url(urlunsplit((scheme, place.netloc, "", place.query, ""))))
    del options["host"]
    if options.pop("connection_class", None) is SSLConnection:
        options["ssl"] = True
    return [(str(address.hostname), address.port or default_port) for address in addresses], DEFAULTS | options


def split_hosts(url: str) -> tuple[str, str]:
    """Split a URL into its hosts and the URL with a single host: urlsplit refuses [::1] behind a comma."""
    start = url.index("://") + len("://")
    end = next((at for at, letter in enumerate(url) if at >= start and letter in "/?#"), len(url))
    start = max(start, url.rfind("@", start, end) + 1)
    return url[start:end], f"{url[:start]}host{url[end:]}"
