"""Sending once: to the address that was checked, without redirects, and with no word of secrets."""

import asyncio
import socket

import pytest

from app.notices import sender as module
from app.notices.posts import Post
from app.notices.sender import NotDelivered, Rejected, Sender
from tests.app.notices.receiver import receiving


@pytest.fixture
async def sender():
    sender = Sender(allow_private=True)
    yield sender
    await sender.close()


def resolving(monkeypatch, *addresses):
    """Let every name lead to these addresses; give the names that were asked for."""
    asked = []

    def answer(host, port, *_, **__):
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return asked


async def test_a_post_arrives_as_it_is(sender):
    async with receiving() as receiver:
        assert await sender.send(Post(f"{receiver.url}/a%20b?c=d", b"body", {"webhook-id": "1"})) == 200
    (received,) = receiver.received
    assert (received.path, received.body, received.id) == ("/hook/a%20b?c=d", b"body", "1")
    assert received.headers["host"] == f"127.0.0.1:{receiver.port}"


async def test_the_address_is_looked_up_once_and_the_name_is_kept(sender, monkeypatch):
    async with receiving() as receiver:
        asked = resolving(monkeypatch, "127.0.0.1")
        await sender.send(Post(f"http://a.host:{receiver.port}/", b""))
    assert asked.count("a.host") == 1
    assert receiver.received[0].headers["host"] == f"a.host:{receiver.port}"


async def test_a_name_that_leads_inside_is_not_told(monkeypatch):
    sender = Sender(allow_private=False)
    async with receiving() as receiver:
        resolving(monkeypatch, "127.0.0.1")
        with pytest.raises(Rejected, match=r"'a\.host' is not a host with a public address"):
            await sender.send(Post(f"http://a.host:{receiver.port}/", b""))
    assert not receiver.received
    await sender.close()


async def test_the_next_address_is_tried_if_one_does_not_answer(sender, monkeypatch):
    async with receiving() as receiver:
        resolving(monkeypatch, "127.0.0.2", "127.0.0.1")
        assert await sender.send(Post(f"http://a.host:{receiver.port}/", b"")) == 200


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 410])
async def test_what_will_not_change_is_rejected_and_no_redirect_followed(sender, status):
    async with receiving(status=status, headers="Location: /elsewhere\r\n") as receiver:
        with pytest.raises(Rejected, match=str(status)) as refused:
            await sender.send(Post(receiver.url, b""))
    assert refused.value.status == status
    assert len(receiver.received) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_what_may_change_is_not_rejected(sender, status):
    async with receiving(status=status) as receiver:
        with pytest.raises(NotDelivered) as refused:
            await sender.send(Post(receiver.url, b""))
    assert type(refused.value) is NotDelivered


async def test_nobody_there_is_said_without_the_url(sender):
    async with receiving() as receiver:
        pass
    with pytest.raises(NotDelivered) as refused:
        await sender.send(Post(f"{receiver.url}/a-secret", b""))
    assert str(refused.value) == "ConnectError"
    assert refused.value.__cause__ is None


async def test_a_receiver_that_does_not_answer_is_given_up(sender, monkeypatch):
    monkeypatch.setattr(module, "TRY_SECONDS", 0.05)
    ended = asyncio.Event()

    async def hold(reader, writer):
        await reader.read()  # until the sender gives up
        writer.close()
        ended.set()

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(NotDelivered, match="TimeoutError"):
            await sender.send(Post(f"http://127.0.0.1:{port}/", b""))
        await ended.wait()


async def test_certificates_are_read_when_something_is_sent_and_once(monkeypatch):
    made = []
    monkeypatch.setattr(
        module.httpx2,
        "AsyncClient",
        lambda client=module.httpx2.AsyncClient, **given: made.append(1) or client(**given),
    )
    idle, busy = Sender(allow_private=True), Sender(allow_private=True)
    await idle.close()
    assert not made
    async with receiving() as receiver:
        await asyncio.gather(*(busy.send(Post(receiver.url, b"")) for _ in range(5)))
    assert made == [1]
    await busy.close()
