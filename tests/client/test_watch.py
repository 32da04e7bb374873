"""Watching a stream: lines become events, and a lost connection continues where it ended."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx2
import pytest

from app.api.events import written
from app.api.histories import columns
from app.streams.log.positions import Position
from app.streams.views.tail import Deleted, Heartbeat, NewLabels, NewLog, NewModel, Update
from itan_client import (
    ApiError,
    AsyncClient,
    Client,
    Event,
    LabelsGiven,
    LogReplaced,
    ModelGrown,
    SamplesSeen,
    ServiceUnreachable,
    StreamDeleted,
)
from itan_client.events import EventReader

LABELS = b'event: labels\nid: 18-0\ndata: {"seq":[17],"label":[true],"accepted":[],"threshold":9.1}\n\n'
GREETING = b"retry: 1000\nid: 17-0\n\n: nothing new\n\n"
LATER_KIND = b'event: of-a-later-version\nid: 18-1\ndata: {"a": 1}\n\n'
DELETED = b"event: deleted\ndata: {}\n\n"
TOLD = [LabelsGiven([17], [True], [], 9.1, "18-0"), StreamDeleted("18-1")]


class Body(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """An answer that comes in pieces, and may break."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece


def watch_sync(transport: httpx2.MockTransport, **options: Any) -> list[Any]:
    slept: list[float] = []
    client = Client("http://s", transport=transport, sleep=slept.append, clock=lambda: sum(slept), **options)
    return list(client.watch("s", "16-0"))


def watch_async(transport: httpx2.MockTransport, **options: Any) -> list[Any]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def watch() -> list[Any]:
        client = AsyncClient("http://s", transport=transport, sleep=sleep, clock=lambda: sum(slept), **options)
        return [event async for event in client.watch("s", "16-0")]

    return asyncio.run(watch())


Watch = Callable[..., list[Any]]
both = pytest.mark.parametrize("watch", [watch_sync, watch_async])


@both
def test_a_lost_connection_continues_where_it_ended(watch: Watch) -> None:
    answers = [
        Body(GREETING, LABELS[:20], LABELS[20:], LATER_KIND, httpx2.ReadError("reset")),
        Body(b"id: 18-1\n\n"),
        httpx2.ConnectError("refused"),
        httpx2.Response(503, json={"code": "stopping"}),
        Body(DELETED, LABELS),
    ]
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.params["after"])
        given = answers.pop(0)
        if isinstance(given, Exception):
            raise given
        return given if isinstance(given, httpx2.Response) else httpx2.Response(200, stream=given)

    assert watch(httpx2.MockTransport(answer)) == TOLD
    assert asked == ["16-0", "18-1", "18-1", "18-1", "18-1"]


@both
def test_a_service_that_stays_away_is_told(watch: Watch) -> None:
    with pytest.raises(ServiceUnreachable):
        watch(httpx2.MockTransport(lambda _: httpx2.Response(200, stream=Body())), retry_seconds=5)


@both
def test_a_refusal_is_told_at_once(watch: Watch) -> None:
    problem = {"code": "unknown_stream", "detail": "no such stream"}
    with pytest.raises(ApiError, match="unknown_stream"):
        watch(httpx2.MockTransport(lambda _: httpx2.Response(404, json=problem)))


@pytest.mark.parametrize(
    ("update", "event"),
    [
        (
            NewLabels(Position(17, 1), [3, 4], [True, None], [2], 1.5),
            LabelsGiven([3, 4], [True, None], [2], 1.5, "17-1"),
        ),
        (NewModel(40, 3, 2), ModelGrown(40, 3, 2, "16-0")),
        (NewLog(Position(18, 0)), LogReplaced("18-0")),
        (Deleted(), StreamDeleted("16-0")),
        (Heartbeat(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_the_service_writes_is_read(update: Update, event: Event | None) -> None:
    reader = EventReader("16-0")
    told = [reader.read(line) for line in written(update, values=True).decode().split("\n")[:-1]]
    assert [one for one in told if one] == ([event] if event else [])


def test_the_client_reads_every_field_of_samples() -> None:
    said = {*columns(None, values=True), "thinned", "position"}
    assert set(SamplesSeen.__struct_fields__) == said
