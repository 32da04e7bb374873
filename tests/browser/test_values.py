"""The newest values of a feature with the expected band behind them."""

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


def card(page: Page) -> Locator:
    return page.locator(".card.values")


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


def test_a_calendar_draws_its_band_into_the_future(service: ServiceProcess, client: Client, visit: Visit) -> None:
    times = daily(client, "daily", features=[{"name": "rate"}], calendar={"periods": ["day"]})
    page = visit(service.url)
    with page.expect_response(is_band) as found:
        page.goto(address(service.url, "daily"))
    query = asked(found.value)
    assert query["feature"] == ["rate"]
    assert abs(float(query["from"][0]) - times[-400]) < 1
    assert float(query["to"][0]) > times[-1] + 0.2 * (times[-1] - times[-400])
    readout = card(page).locator(".readout")
    expect(readout).to_have_text(
        re.compile(r"^rate is \S+, expected \S+ to \S+\. Outside the band: \d+ of 400 values\.$")
    )
    value, low, high = map(float, re.findall(r"-?\d+\.\d+", readout.inner_text())[:3])
    band = client.band("daily", "rate", times[-1], times[-1], [0.05, 0.95], 2)
    assert abs(low - band.values[0][0]) < 0.3
    assert abs(high - band.values[1][0]) < 0.3
    assert not low < value < high
    await_band(page)


def await_band(page: Page) -> None:
    """Wait until a part of the canvas has the colour of the band."""
    page.wait_for_function("""() => {
        const canvas = document.querySelector(".card.values canvas");
        if (canvas === null) return false;
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let many = 0;
        for (let i = 0; i < data.length; i += 4) {
            const [r, g, b, a] = data.slice(i, i + 4);
            if (a > 20 && a < 80 && g > r + 50 && g > b) many++;
        }
        return many > canvas.width;
    }""")


def test_a_value_outside_is_listed_and_leads_to_its_sample(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    daily(client, "outside", features=[{"name": "rate"}], calendar={"periods": ["day"]})
    page = visit(address(service.url, "outside"))
    card(page).get_by_text("Values outside the band as a table").click()
    card(page).get_by_role("button", name="Why value of sample 1000").click()
    expect(StreamPage(page).sample.get_by_role("heading")).to_have_text("Sample 1,000")


def test_with_context_the_band_stands_at_the_samples_and_context_has_no_contribution(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    features = [{"name": "rate"}, {"name": "load", "role": "context"}]
    times = daily(client, "loaded", last=40.0, features=features)
    page = visit(service.url)
    with page.expect_response(is_band) as found:
        page.goto(address(service.url, "loaded"))
    assert found.value.json()["seq"] == list(range(601, 1001))
    assert abs(float(asked(found.value)["to"][0]) - times[-1]) < 1
    expect(card(page).locator("option")).to_have_text(["rate"])
    card(page).get_by_text("Values outside the band as a table").click()
    card(page).get_by_role("button", name="Why value").first.click()
    row = StreamPage(page).sample.locator("tbody tr", has_text="load (context)")
    expect(row.locator(".bars")).to_have_text("\N{EN DASH}")
    expect(row.locator(".n").last).not_to_have_text("\N{EN DASH}")
    expect(StreamPage(page).sample.locator(".note")).to_contain_text("Context is known and not scored")


def test_another_feature_can_be_chosen_and_without_context_the_band_is_flat(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    client.observe("plain", clusters(400))
    page = visit(address(service.url, "plain"))
    readout = card(page).locator(".readout")
    expect(readout).to_contain_text("cpu is ")
    with page.expect_response(is_band) as found:
        card(page).get_by_label("of").select_option("queue")
    low, high = found.value.json()["values"]
    assert (len(set(low)), len(set(high))) == (1, 1)
    expect(readout).to_contain_text("queue is ")
    await_band(page)
