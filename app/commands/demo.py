"""`itan demo`: a service with made-up streams, to be looked at."""

import time
from itertools import islice
from typing import Annotated

import typer

from app.commands.connection import one_line_errors
from app.commands.stopping import StopRequests
from itan_client import Client

PUMP, SHOP = "pump", "shop"
HISTORY, SHOP_HISTORY = 1_500, 2_688
"""Samples at the start: of the shop four weeks, of which the calendar needs two or three."""


def demo(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 0,
    rate: Annotated[float, typer.Option(min=0.1, max=200.0, help="Samples a second of each stream.")] = 8.0,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Most samples of each to send live.", show_default="until Ctrl-C")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the streams.")] = 0,
) -> None:
    """Start a service with two made-up streams, and print their addresses.

    A pump station with four sensors: three regimes, a slow drift, and now and then a leak, or values that do not go
    together. And a shop with a calendar, whose fast clock gains a quarter of an hour with each sample: now and then its
    traffic is that of another time of the day. Some labels come late; others are for you to give. Ctrl-C ends it all.
    """
    from app.demo import pump, shop
    from app.demo.feeding import Feeder, feed_live, feed_past
    from app.replay.local import local_service

    with one_line_errors(), StopRequests() as stop, local_service(port=port) as url, Client(url) as client:
        pump_feeder = Feeder(client, PUMP, pump.readings(seed), seed)
        shop_feeder, shop_times = Feeder(client, SHOP, shop.readings(seed), seed), shop.times()
        client.create(SHOP, shop.CONFIG)
        feed_past(pump_feeder, [time.time() - (HISTORY - i) / rate for i in range(HISTORY)])
        feed_past(shop_feeder, list(islice(shop_times, SHOP_HISTORY)))
        pages = f"{url}/#/streams/{PUMP} or {url}/#/streams/{SHOP}"
        print(f"itan demo: open {pages} in a browser; Ctrl-C ends it", flush=True)
        clocks = {pump_feeder: time.time, shop_feeder: lambda: min(next(shop_times), time.time())}
        feed_live(clocks, limit, rate, time.time, stop.came_within)
        n_sent, n_flagged = sum(it.n_sent for it in clocks), sum(it.n_flagged for it in clocks)
        print(f"itan demo: {n_sent} samples, {n_flagged} of them flagged", flush=True)
