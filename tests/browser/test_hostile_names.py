"""Names that hold markup stay text, wherever they are shown."""

import re

import numpy as np
from playwright.sync_api import Page, expect

from itan_client import Client
from tests.browser.conftest import Visit
from tests.browser.console import Console
from tests.browser.stream_page import StreamPage, address
from tests.integration.process import ServiceProcess

IMAGE = "<img src=x onerror=\"document.title='taken'\">"
SCRIPT = "\"'></script><script>document.title='taken'</script>"
LINK = "javascript:document.title='taken'"
ITSELF = "1 img, 1 script"


def samples(n: int) -> list[dict[str, float]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[-1] = 40.0
    return [dict(zip((IMAGE, SCRIPT, "__proto__"), row, strict=True)) for row in X.tolist()]


def counted(page: Page) -> str:
    """What the page holds of what names would like to be."""
    images, scripts = page.locator("img, iframe, object").count(), page.locator("script").count()
    return f"{images} img, {scripts} script"


def test_names_of_features_and_ids_stay_text(service: ServiceProcess, client: Client, visit: Visit) -> None:
    client.observe("hostile", samples(300), ids=[f"{IMAGE}{number}" for number in range(300)])
    shown = StreamPage(visit(address(service.url, "hostile")))
    shown.settle()
    shown.keyboard.press("j")
    shown.keyboard.press("k")
    for name in (IMAGE, SCRIPT, "__proto__"):
        expect(shown.reasons.get_by_text(name, exact=True)).to_be_visible()
    expect(shown.sample).to_contain_text(re.compile(re.escape(IMAGE) + r"\d+"))
    for summary in shown.page.locator("summary").all():
        summary.click()
    shown.page.get_by_label("across").select_option(label="__proto__")
    expect(shown.page.locator(".density-plot")).to_have_attribute("aria-label", f"Density over __proto__ and {SCRIPT}")
    shown.keyboard.press("?")
    assert counted(shown.page) == ITSELF
    assert shown.page.title() == "hostile · itan"


def test_names_of_streams_in_the_address_stay_text(service: ServiceProcess, visit: Visit, console: Console) -> None:
    console.expect("400", "404", "422")
    for name in (IMAGE, SCRIPT, LINK, "..%2f..%2flivez"):
        page = visit(address(service.url, name))
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
        expect(page.get_by_role("alert").first).to_be_visible()
        assert counted(page) == ITSELF
        assert page.title() == f"{name} · itan"
