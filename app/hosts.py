"""Which names the service answers to.

A web page can let its own name lead to this machine (DNS rebinding) and is then, to the browser, of the same site as an
open service here. Its requests bear its name, though, so that a name which is not ours is refused. An address is always
good: a browser sends one only to a page that was opened by it.
"""

import ipaddress
import re
from collections.abc import Iterable

ANY = "*"
LOCAL = "localhost"
MOST_REMEMBERED = 100
HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::\d*)?")


class UnknownHost(Exception):
    """A request for a host name that is not the service's."""

    def __init__(self, host: str) -> None:
        super().__init__(f"the service does not answer to the name {host[:80]!r} (ITAN_ALLOWED_HOSTS)")
        self.host = host


class Hosts:
    """The host names that requests may use."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name.lower() for name in names}
        self._known: set[str] = set()

    def know(self, header: str) -> bool:
        """Tell whether a Host header names this service. A missing one does: browsers always send it."""
        if not header or header in self._known or ANY in self._names:
            return True
        is_known = self._names_us(header)
        if is_known and len(self._known) < MOST_REMEMBERED:
            self._known.add(header)
        return is_known

    def check(self, header: str) -> None:
        """Raise UnknownHost for a Host header that names another."""
        if not self.know(header):
            raise UnknownHost(header)

    def _names_us(self, header: str) -> bool:
        found = HOST.fullmatch(header)
        name = found["name"].lower().rstrip(".") if found else ""
        return name in self._names or name == LOCAL or name.endswith(f".{LOCAL}") or is_address(name)


ANY_HOST = Hosts([ANY])


def is_address(name: str) -> bool:
    """Tell whether a host is an IP address."""
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
