"""The features' values below the score: over the same span, with the expected band behind them."""

import re
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from playwright.sync_api import Locator, Page, Response, expect

from itan_client import Client
from tests.browser.conftest import Visit
from tests.browser.samples import clusters
from tests.browser.stream_page import StreamPage, address
from tests.integration.process import ServiceProcess

DAY = 86_400
EVERY = 600
MANY = 40
# edges of lines have the colour of a shade by chance; one column of shade has more pixels
STRAY = 50


def card(page: Page) -> Locator:
    return page.locator(".card.signals")


def signal(page: Page, name: str) -> Locator:
    return card(page).locator(".signal").filter(has=page.get_by_role("heading", name=name))


def asked(answer: Response) -> dict[str, list[str]]:
    """Give the query of a request for a band."""
    return parse_qs(urlsplit(answer.url).query)


def is_band(answer: Response) -> bool:
    return urlsplit(answer.url).path.endswith("/band")


def daily(client: Client, stream: str, last: float | None = None, **config: Any) -> list[float]:
    """Make a stream that follows the day; the last value is of another time of the day, or as given. Give its times."""
    times = (time.time() - EVERY * np.arange(1000)[::-1]).tolist()
    rng = np.random.default_rng(0)
    rate = 5 * np.sin(2 * np.pi * np.array(times) / DAY) + 0.3 * rng.normal(size=1000)
    rate[-1] = -5.0 * np.sign(rate[-1]) if last is None else last
    load = rng.normal(size=1000)
    client.create(stream, config)
    for first in range(0, 1000, 100):
        part = slice(first, first + 100)
        samples = np.column_stack([rate, load])[part, : len(config["features"])].tolist()
        client.observe(stream, samples, timestamps=times[part])
    return times


def wide(n: int, odd: int) -> list[dict[str, float]]:
    """Make samples of many features; the last one is odd in one of them."""
    X = np.random.default_rng(0).normal(size=(n, MANY))
    X[-1, odd] = 30.0
    return [{f"f{k:02}": value for k, value in enumerate(row)} for row in X.tolist()]


def inked(chart: Locator, first: float, last: float, variable: str) -> int:
    """Count the pixels of a colour of the stylesheet between two shares of a chart's width."""
    script = """(plot, [first, last, variable]) => {
        const canvas = plot.querySelector("canvas"), copy = document.createElement("canvas");
        [copy.width, copy.height] = [canvas.width, canvas.height];
        const pen = copy.getContext("2d", { willReadFrequently: true });
        pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(variable);
        pen.fillRect(0, 0, 1, 1);
        const wanted = pen.getImageData(0, 0, 1, 1).data;
        pen.clearRect(0, 0, 1, 1);
        pen.drawImage(canvas, 0, 0);
        const over = plot.querySelector(".u-over").getBoundingClientRect(), all = canvas.getBoundingClientRect();
        const scale = canvas.width / all.width, x = (share) => (over.left - all.left + share * over.width) * scale;
        const { data } = pen.getImageData(x(first), 0, x(last) - x(first), canvas.height);
        const isLike = (i) => [0, 1, 2, 3].every((k) => Math.abs(data[i + k] - wanted[k]) < 12);
        let many = 0;
        for (let i = 0; i < data.length; i += 4) many += isLike(i);
        return many;
    }"""
    expect(chart.locator("canvas")).to_be_visible()
    return int(chart.evaluate(script, [first, last, variable]))


def await_band(chart: Locator) -> None:
    """Wait until a part of the canvas has the colour of the band."""
    for _ in range(100):
        if inked(chart, 0, 1, "--band") > 1000:
            return
        chart.page.wait_for_timeout(50)
    raise AssertionError("no band")


def test_the_band_of_a_calendar_covers_the_span_and_tells_values_apart(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    times = daily(client, "daily", features=[{"name": "rate"}], calendar={"periods": ["day"]})
    page = visit(service.url)
    with page.expect_response(is_band) as found:
        page.goto(address(service.url, "daily"))
    query = asked(found.value)
    assert query["feature"] == ["rate"]
    assert float(query["from"][0]) <= times[-400]
    assert float(query["to"][0]) > times[-1]
    reading = signal(page, "rate").locator(".reading")
    expect(reading).to_have_text(re.compile(r"^\S+ expected \S+ to \S+$"))
    value, low, high = map(float, re.findall(r"-?\d+\.\d+", reading.inner_text()))
    band = client.band("daily", "rate", times[-1], times[-1], [0.05, 0.95], 2)
    assert abs(low - band.values[0][0]) < 0.3
    assert abs(high - band.values[1][0]) < 0.3
    assert not low < value < high
    expect(reading.locator(".out")).to_have_count(1)
    await_band(signal(page, "rate"))
    page.get_by_role("button", name="Samples").click()
    expect(reading).to_have_text(re.compile(r"^\S+ expected \S+ to \S+$"))
    await_band(signal(page, "rate"))
    card(page).get_by_text("Values outside the band as a table").click()
    card(page).get_by_role("button", name="Why value of sample 1000").click()
    expect(StreamPage(page).sample.get_by_role("heading")).to_have_text("Sample 1,000")


def test_with_context_the_band_stands_at_the_samples_and_context_has_none(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    features = [{"name": "load", "role": "context"}, {"name": "rate"}]
    daily(client, "loaded", last=40.0, features=features)
    page = visit(service.url)
    with page.expect_response(is_band) as found:
        page.goto(address(service.url, "loaded"))
    assert found.value.json()["seq"] == list(range(601, 1001))
    expect(card(page).get_by_role("heading", level=3)).to_have_text(["rate", "load (context)"])
    expect(signal(page, "rate").locator(".reading")).to_contain_text("expected")
    expect(signal(page, "load").locator(".reading")).not_to_contain_text("expected")


def test_looking_back_shows_the_values_of_that_time(service: ServiceProcess, client: Client, visit: Visit) -> None:
    client.observe("steps", [{"level": float(k // 100)} for k in range(3000)])
    shown = StreamPage(visit(address(service.url, "steps")))
    reading = signal(shown.page, "level").locator(".reading b")
    expect(reading).to_have_text("29.00")
    shown.chart.focus()
    shown.keyboard.press("Home")
    expect(reading).not_to_have_text("29.00")
    client.observe("steps", [{"level": 50.0}])
    shown.keyboard.press("End")
    expect(reading).to_have_text("50.00")


def test_what_explains_the_sample_comes_first_and_the_rest_is_folded_and_drawn_when_in_sight(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    client.observe("wide", wide(400, odd=33))
    page = visit(address(service.url, "wide"))
    names = card(page).get_by_role("heading", level=3)
    expect(names.first).to_have_text("f33")
    page.get_by_role("button", name="Close the sample").click()
    expect(names).to_have_text([f"f{k:02}" for k in range(5)])
    page.get_by_text("Flagged samples as a table").click()
    page.get_by_role("button", name="Why sample 400").click()
    expect(names.first).to_have_text("f33")
    expect(names).to_have_count(5)
    card(page).get_by_role("button", name=f"Show all {MANY} features").click()
    expect(names).to_have_count(MANY)
    expect(card(page).locator("canvas").first).to_be_visible()
    assert card(page).locator("canvas").count() < MANY / 2
    names.last.scroll_into_view_if_needed()
    expect(card(page).locator(".signal").last.locator("canvas")).to_be_visible()


def test_missing_values_and_silence_are_gaps(service: ServiceProcess, client: Client, visit: Visit) -> None:
    rng, begin = np.random.default_rng(0), time.time() - 3600
    samples = [{"a": rng.normal(), "b": rng.normal() if k < 100 or k >= 200 else None} for k in range(300)]
    times = [begin + k + 600 * (k >= 250) for k in range(300)]
    client.observe("gaps", samples, timestamps=times)
    shown = StreamPage(visit(address(service.url, "gaps")))
    expect(shown.chart).to_have_attribute("data-axis", "time")
    a, b = signal(shown.page, "a"), signal(shown.page, "b")
    expect(b.locator("canvas")).to_be_visible()
    assert inked(a, 0.15, 0.2, "--line") > 0
    assert inked(b, 0.15, 0.2, "--line") == 0
    assert inked(b, 0.02, 0.08, "--line") > 0
    for chart in (shown.chart, a, b):
        assert inked(chart, 0.35, 0.9, "--line") == 0
        assert inked(chart, 0.96, 1, "--line") > 0
    shown.page.get_by_role("button", name="Samples").click()
    expect(shown.chart).to_have_attribute("data-axis", "samples")
    expect(shown.page.locator(".zone")).to_have_count(0)
    assert inked(a, 0.35, 0.9, "--line") > 0
    assert inked(b, 0.4, 0.6, "--line") == 0


def test_a_silence_that_goes_on_is_a_gap_until_now(service: ServiceProcess, client: Client, visit: Visit) -> None:
    begin = time.time() - 420
    client.observe("silent", clusters(300), timestamps=[begin + k for k in range(300)])
    shown = StreamPage(visit(address(service.url, "silent")))
    expect(shown.chart).to_have_attribute("data-axis", "time")
    for chart in (shown.chart, signal(shown.page, "cpu")):
        assert inked(chart, 0.5, 0.65, "--line") > 0
        assert inked(chart, 0.74, 1, "--line") == 0


def test_by_the_clock_a_young_stream_leaves_no_room_for_times_to_come(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    begin = time.time() - 2400
    client.observe("young", clusters(40), timestamps=[begin + 60 * k for k in range(40)])
    shown = StreamPage(visit(address(service.url, "young")))
    expect(shown.chart).to_have_attribute("data-axis", "time")
    await_band(signal(shown.page, "cpu"))
    assert inked(signal(shown.page, "cpu"), 0.8, 0.95, "--line") > 0


def test_what_came_in_maintenance_is_shaded_and_not_counted_as_flagged(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    now = time.time()
    client.put_window("works", "works", now - 60, now + 60)
    client.observe("works", clusters(300, odd_share=0), timestamps=[now - 400 + k for k in range(300)])
    odd = [{"cpu": 9.0, "latency_ms": 900.0, "queue": 99.0}] * 30
    assert all(client.observe("works", odd, timestamps=[now - 50 + k for k in range(30)]).in_maintenance)
    shown = StreamPage(visit(address(service.url, "works")))
    expect(shown.tile("flagged of newest 330")).to_have_text("0%")
    expect(shown.readout).to_contain_text("in a maintenance window: severity")
    expect(shown.readout).to_contain_text("Flagged here: 0 of 330 samples drawn.")
    expect(shown.page.locator(".card.score .legend")).to_contain_text("maintenance")
    assert inked(shown.chart, 0.9, 0.97, "--maintenance") > 1000
    assert inked(shown.chart, 0, 0.8, "--maintenance") < STRAY


def test_late_samples_of_a_maintenance_window_are_shaded_at_their_time(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    begin = time.time() - 300
    client.put_window("late", "late", begin + 100, begin + 150)
    ordinary = [begin + k for k in range(300) if not 95 <= k < 155]
    client.observe("late", clusters(240, odd_share=0), timestamps=ordinary)
    answer = client.observe("late", clusters(40, odd_share=0), timestamps=[begin + 105 + k for k in range(40)])
    assert all(answer.in_maintenance)
    shown = StreamPage(visit(address(service.url, "late")))
    expect(shown.readout).to_contain_text("Sample 280")
    expect(shown.chart).to_have_attribute("data-axis", "time")
    assert inked(shown.chart, 0.38, 0.46, "--maintenance") > 1000
    assert inked(shown.chart, 0.6, 1, "--maintenance") < STRAY


def test_times_are_those_of_the_browser_and_samples_that_came_together_stand_side_by_side(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    daily(client, "zones", features=[{"name": "rate"}], calendar={"periods": ["day"], "timezone": "Europe/Berlin"})
    page = visit(address(service.url, "zones"), timezone_id="Asia/Tokyo")
    expect(page.locator(".zone")).to_have_text(
        "Times are those of your browser, Asia/Tokyo. The calendar of the stream follows Europe/Berlin."
    )
    client.observe("together", clusters(300))
    shown = StreamPage(visit(address(service.url, "together")))
    expect(shown.chart).to_have_attribute("data-axis", "samples")
    shown.page.get_by_role("button", name="Time").click()
    expect(shown.chart).to_have_attribute("data-axis", "time")


def test_the_charts_go_to_the_sample_under_review_and_back(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    client.observe("jump", clusters(50, odd_share=0))
    client.observe("jump", [*clusters(300, odd_share=0), {"cpu": 9.0, "latency_ms": 900.0, "queue": 99.0}])
    client.observe("jump", clusters(1500, odd_share=0, seed=1))
    shown = StreamPage(visit(address(service.url, "jump")))
    shown.settle()
    expect(shown.chart).to_have_attribute("data-to", "1851")
    order = "What makes sample 351 unusual comes first."
    expect(card(shown.page)).to_contain_text(f"{order} It is not in view: it came before what is shown.")
    while shown.current.get_by_role("button").first.inner_text() != "sample 351":
        shown.keyboard.press("j")
    shown.current.get_by_role("button").first.click()
    expect(shown.chart).not_to_have_attribute("data-to", "1851")
    first, last = (int(shown.chart.get_attribute(name) or "") for name in ("data-from", "data-to"))
    assert first <= 351 <= last
    expect(card(shown.page)).to_contain_text(order)
    expect(card(shown.page)).not_to_contain_text("not in view")
    expect(signal(shown.page, "cpu").locator(".reading b")).to_have_text("9.00")
    shown.page.get_by_role("button", name="Back to live").click()
    expect(shown.chart).to_have_attribute("data-to", "1851")


def test_a_stream_that_warms_up_shows_no_empty_axes(service: ServiceProcess, client: Client, visit: Visit) -> None:
    client.observe("cold", clusters(20))
    page = visit(address(service.url, "cold"))
    needed = client.get("cold").samples_needed
    expect(page.locator(".warm-up")).to_contain_text(f"Warming up: 20 of {20 + needed} samples.")
    expect(page.locator(".score canvas")).to_have_count(0)
    expect(signal(page, "cpu").locator("canvas")).to_be_visible()
    client.observe("cold", clusters(200))
    expect(page.locator(".score canvas")).to_be_visible()
    expect(page.locator(".warm-up")).to_have_count(0)
    await_band(signal(page, "cpu"))
