"""The picture of the live page in the README: ITAN_TEST_SCREENSHOT=docs/live-page.png makes it anew."""

import os
from pathlib import Path

from playwright.sync_api import expect

from itan_client import Client
from tests.browser.conftest import Visit
from tests.browser.samples import clusters
from tests.browser.stream_page import StreamPage, address
from tests.integration.process import ServiceProcess

PNG = b"\x89PNG"


def test_the_page_of_a_reviewed_stream_is_pictured(
    service: ServiceProcess, client: Client, visit: Visit, tmp_path: Path
) -> None:
    picture = Path(os.environ.get("ITAN_TEST_SCREENSHOT", tmp_path / "page.png"))
    client.observe("plant-7", clusters(1500))
    page = visit(address(service.url, "plant-7"), viewport={"width": 1360, "height": 900})
    shown = StreamPage(page)
    shown.settle()
    for key in "ann":
        seen = shown.effect.inner_text()
        shown.keyboard.press(key)
        expect(shown.effect).not_to_have_text(seen, use_inner_text=True)
    expect(shown.reasons.first).to_be_visible()
    expect(shown.tile("labels")).to_have_text("3")
    page.screenshot(path=picture, animations="disabled", full_page=True)
    assert picture.read_bytes().startswith(PNG)
