"""Which addresses notices may be sent to."""

import socket

import pytest

from app.notices.addresses import NEVER, PUBLIC_ONLY, HostUnknown, TargetRefused, addresses_of, refuse_forbidden

PRIVATE = [
    "127.0.0.1",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "::1",
    "fd00::1",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
    "2002:a00:1::",
]
NEVER_ALLOWED = [
    "169.254.169.254",
    "100.100.100.200",
    "fd00:ec2::254",
    "fe80::1",
    "0.0.0.0",
    "::",
    "224.0.0.1",
    "ff02::1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
]
PUBLIC = ["1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1"]


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_need_a_word(address):
    with pytest.raises(TargetRefused) as refused:
        refuse_forbidden("a.host", [address], allow_private=False)
    assert (refused.value.host, refused.value.limit) == ("a.host", PUBLIC_ONLY)
    refuse_forbidden("a.host", [address], allow_private=True)


@pytest.mark.parametrize("address", NEVER_ALLOWED)
def test_addresses_of_metadata_and_of_no_machine_are_never_told(address):
    for allow_private in (True, False):
        with pytest.raises(TargetRefused, match=NEVER):
            refuse_forbidden("a.host", [address], allow_private=allow_private)


def test_public_addresses_are_told():
    refuse_forbidden("a.host", PUBLIC, allow_private=False)


def test_one_bad_address_among_good_ones_refuses_the_host():
    with pytest.raises(TargetRefused):
        refuse_forbidden("a.host", [*PUBLIC, "10.0.0.1"], allow_private=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "0x7f000001", "2130706433"])
async def test_every_way_to_write_the_loopback_is_found_out(host):
    with pytest.raises(TargetRefused):
        await addresses_of(host, 80, allow_private=False)


async def test_a_host_without_addresses_is_unknown(monkeypatch):
    def fail(*_, **__):
        raise socket.gaierror("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(HostUnknown):
        await addresses_of("a.host", 80, allow_private=True)
