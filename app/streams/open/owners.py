"""The owners of leases: the name of a worker, and the address at which it takes records from other workers.

A lease so tells everybody where to send what its holder must write, for as long as it lasts and no longer.
"""

from os import getpid
from secrets import token_hex
from socket import gethostname

SCHEMES = ("http://", "https://")


def unique_name() -> str:
    """Name this process as no other."""
    return f"{gethostname()}:{getpid()}:{token_hex(4)}"


def owner_of(name: str, address: str) -> str:
    """Name the owner of leases.

    >>> owner_of("itan-2", "http://itan-2:8000"), owner_of("itan-2", "")
    ('itan-2 http://itan-2:8000', 'itan-2')
    """
    return f"{name} {address}" if address else name


def address_of(owner: str) -> str:
    """Give the address of an owner; empty if it takes no records from other workers.

    >>> address_of("itan-2 http://itan-2:8000"), address_of("itan 2")
    ('http://itan-2:8000', '')
    """
    address = owner.rpartition(" ")[2]
    return address if address.startswith(SCHEMES) else ""
