"""`itan demo`: a service with a made-up stream, to be looked at."""

import time
from typing import Annotated

import typer

from app.client import Client
from app.commands.connection import one_line_errors
from app.commands.stopping import StopRequests

STREAM = "pump"
HISTORY = 1_500
LONGEST_PAUSE_SECONDS = 0.2


def demo(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 0,
    rate: Annotated[float, typer.Option(min=0.1, max=200.0, help="Samples a second.")] = 8.0,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Most samples to send live.", show_default="until Ctrl-C")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the stream.")] = 0,
) -> None:
    """Start a service with a made-up stream that drifts, and print its address.

    A pump station with four sensors: three regimes, a slow drift, and now and then a leak, or values that do not go
    together. Some labels come late; the others are for you to give. Ctrl-C ends it all.
    """
    from app.demo.feeding import Feeder, feed_live, feed_past
    from app.demo.pump import readings
    from app.replay.local import local_service

    with one_line_errors(), StopRequests() as stop, local_service(port=port) as url, Client(url) as client:
        feeder = Feeder(client, STREAM, readings(seed), seed)
        feed_past(feeder, HISTORY, rate, time.time())
        print(f"itan demo: open {url}/#/streams/{STREAM} in a browser; Ctrl-C ends it", flush=True)
        feed_live(feeder, limit, rate, time.time, lambda seconds: _is_ended_within(stop, seconds))
        print(f"itan demo: {feeder.n_sent} samples, {feeder.n_flagged} of them flagged", flush=True)


def _is_ended_within(stop: StopRequests, seconds: float) -> bool:
    ends = time.monotonic() + seconds
    while not stop.came():
        left = ends - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(left, LONGEST_PAUSE_SECONDS))
    return True
