"""The pictures of the live page in the documentation: ITAN_TEST_PICTURES=docs makes them anew."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from itan_client import Client
from tests.browser.conftest import Visit
from tests.browser.samples import clusters
from tests.browser.stream_page import StreamPage, address
from tests.integration.process import ServiceProcess

PNG = b"\x89PNG"
DAY = 86_400
QUARTER = 900
MINUTE = 60


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """The folder of the pictures."""
    return Path(os.environ.get("ITAN_TEST_PICTURES", tmp_path)).absolute()


def test_the_page_of_a_reviewed_stream_is_pictured(
    service: ServiceProcess, client: Client, visit: Visit, pictures: Path
) -> None:
    times = time.time() - MINUTE * np.arange(1500)[::-1]
    client.observe("plant-7", clusters(1500), timestamps=times.tolist())
    page = visit(address(service.url, "plant-7"), viewport={"width": 1360, "height": 1160})
    shown = StreamPage(page)
    shown.settle()
    for key in "ann":
        seen = shown.effect.inner_text()
        shown.keyboard.press(key)
        expect(shown.effect).not_to_have_text(seen, use_inner_text=True)
    expect(shown.reasons.first).to_be_visible()
    expect(shown.tile("labels")).to_have_text("3")
    for name, whole in (("live-page-top.png", False), ("live-page.png", True)):
        page.screenshot(path=pictures / name, animations="disabled", full_page=whole)
        assert (pictures / name).read_bytes().startswith(PNG)


def test_the_expected_band_of_a_day_is_pictured(
    service: ServiceProcess, client: Client, visit: Visit, pictures: Path
) -> None:
    times = time.time() - QUARTER * np.arange(8 * DAY / QUARTER)[::-1]
    rng = np.random.default_rng(0)
    daily = 1 + np.sin(2 * np.pi * times / DAY)
    X = np.column_stack([30 + 15 * daily, 100 + 150 * daily]) + rng.normal(size=(len(times), 2)) * [3, 20]
    X[-60] = X[-60] - [0, 180]
    client.create(
        "shop", {"features": [{"name": "latency_ms"}, {"name": "requests"}], "calendar": {"periods": ["day"]}}
    )
    client.observe("shop", X.tolist(), timestamps=times.tolist())
    page = visit(address(service.url, "shop"), viewport={"width": 1360, "height": 900})
    StreamPage(page).settle()
    card = page.locator(".card.signals")
    table = card.get_by_text("Values outside the band as a table")
    table.click()
    expect(card.get_by_role("row").filter(has_text="requests").first).to_be_visible()
    table.click()
    card.screenshot(path=pictures / "expected-band.png", animations="disabled")
    assert (pictures / "expected-band.png").read_bytes().startswith(PNG)
