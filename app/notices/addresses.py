"""Where notices may go: a URL must not lead into the network of the service, unless the operator allows it."""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# what clouds tell their machines, keys included, at addresses that are not link-local
METADATA: Final = frozenset(map(ipaddress.ip_address, ("100.100.100.200", "192.0.0.192", "fd00:ec2::254")))
RESOLVE_SECONDS: Final = 5.0
NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
PUBLIC_ONLY: Final = "a host with a public address, unless ITAN_NOTICES_ALLOW_PRIVATE"
NEVER: Final = "a host; link-local and metadata addresses never are"


class TargetRefused(Exception):
    """A host that notices may not be sent to."""

    def __init__(self, host: str, limit: str) -> None:
        super().__init__(f"{host!r} is not {limit}")
        self.host, self.limit = host, limit


class HostUnknown(Exception):
    """A host that has no address now."""


async def addresses_of(host: str, port: int, *, allow_private: bool) -> list[str]:
    """Resolve a host to the addresses that a notice may be sent to.

    Raises TargetRefused if any of them is forbidden: who answers so wants more than a notice. HostUnknown if none is.
    """
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError, UnicodeError) as error:
        raise HostUnknown(host) from error
    addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
    refuse_forbidden(host, addresses, allow_private=allow_private)
    return addresses


def refuse_forbidden(host: str, addresses: Sequence[str], *, allow_private: bool) -> None:
    """Raise TargetRefused for addresses that notices may not be sent to."""
    for text in addresses:
        address = carried(ipaddress.ip_address(text))
        if is_never_allowed(address):
            raise TargetRefused(host, NEVER)
        if not (allow_private or address.is_global):
            raise TargetRefused(host, PUBLIC_ONLY)


def is_never_allowed(address: Address) -> bool:
    """Tell whether an address belongs to the machine's own link, to a cloud's metadata, or to no single machine."""
    return address.is_link_local or address.is_multicast or address.is_unspecified or address in METADATA


def carried(address: Address) -> Address:
    """Give the IPv4 address that an IPv6 address stands for, or the address itself."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return address.ipv4_mapped or address.sixtofour or address
    return address
