"""The list of streams: orders, groups, search, and what is to be seen of all together."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from itan_client import Client
from tests.browser.conftest import Visit
from tests.browser.samples import clusters
from tests.browser.test_accessible import LOOKS, axe, grave_faults
from tests.integration.process import ServiceProcess

__all__ = ["axe"]

LONG = "plant-7:line_3." + "x" * 103 + ".end-of-it"
NARROW = {"viewport": {"width": 320, "height": 740}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service with 60 streams: one has had an outage that goes on, and one is ready."""
    with ServiceProcess("memory://", tmp_path_factory.mktemp("fleet")) as running, Client(running.url) as client:
        for number in range(57):
            client.create(f"site-{number % 3}.pump-{number:02}", {"n_features": 2})
        client.create(LONG, {"n_features": 2})
        client.observe("site-0.pump-00", [[1.0, 2.0], [2.0, 1.0]])
        ordinary = clusters(600, odd_share=0.0)
        client.observe("web:calm", ordinary)
        client.observe("web:broken", ordinary)
        client.observe("web:broken", [[80.0 + i, -90.0, 70.0] for i in range(5)])
        yield running


def names(page: Page) -> list[str]:
    return page.locator(".entry .name").all_text_contents()


def opened(visit: Visit, service: ServiceProcess, rest: str = "", **options: object) -> Page:
    page = visit(f"{service.url}/#/{rest}", **options)
    expect(page.locator(".entry").first).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("flagged in the last 24 hours"))).to_be_visible()
    return page


def test_all_are_summed_up_and_the_open_incident_leads_to_its_sample(fleet: ServiceProcess, visit: Visit) -> None:
    page = opened(visit, fleet)
    tiles = page.locator(".card.overview .tile")
    expect(tiles.filter(has_text="streams").locator("dd")).to_have_text("60")
    expect(tiles.filter(has_text="warming up").locator("dd")).to_have_text("58")
    expect(tiles.filter(has_text="open incidents").locator("dd")).to_have_text("1")
    page.locator(".few").filter(has_text="Open incidents").get_by_role("link", name="web:broken").click()
    expect(page).to_have_url(re.compile(r"#/streams/web%3Abroken\?incident=601$"))
    page.go_back()
    expect(page.locator(".entry").first).to_be_visible()


def test_an_order_a_search_and_a_group_are_kept_in_the_address(fleet: ServiceProcess, visit: Visit) -> None:
    page = opened(visit, fleet)
    page.get_by_label("Sort by").select_option("incidents")
    expect(page.locator(".entry .name").first).to_have_text("web:broken")
    page.get_by_role("button", name="flagged 24 h").click()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("flagged")
    expect(page.locator(".entry .name").first).to_have_text("web:broken")
    page.keyboard.press("/")
    page.keyboard.type("PUMP-5")
    expect(page.locator(".entry")).to_have_count(7)
    assert page.url.endswith("#/?search=PUMP-5&order=flagged")
    page.reload()
    expect(page.locator(".entry")).to_have_count(7)
    page = opened(visit, fleet)
    groups = page.get_by_role("navigation", name="Groups of streams")
    groups.get_by_role("link", name="site- 57 streams").click()
    expect(page.locator(".entry .name").first).to_have_text("site-0.pump-00")
    groups.get_by_role("link", name="1.pump- 19 streams").click()
    expect(page.locator(".entry")).to_have_count(19)
    expect(page.locator(".card.overview .tile").first).to_contain_text("19")
    groups.get_by_role("link", name="site-", exact=True).click()
    expect(page.locator(".entry")).to_have_count(50)
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".entry")).to_have_count(7)
    page.go_back()
    expect(page.locator(".entry")).to_have_count(19)


def test_arrow_keys_walk_through_the_names(fleet: ServiceProcess, visit: Visit) -> None:
    page = opened(visit, fleet)
    page.locator(".entry .name").first.focus()
    for key, place in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1)):
        page.keyboard.press(key)
        expect(page.locator(".entry .name").nth(place)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="site-0.pump-00")).to_be_visible()


@pytest.mark.parametrize(("look", "choice"), {"light": "", "dark": "?prefix=web:", "phone": "?order=incidents"}.items())
def test_axe_finds_no_grave_fault_in_the_list(
    fleet: ServiceProcess, visit: Visit, axe: str, look: str, choice: str
) -> None:
    page = opened(visit, fleet, choice, **LOOKS[look])
    page.locator("summary").click()
    assert grave_faults(page, axe) == []


def test_the_longest_name_stays_in_its_cell_on_the_narrowest_phone(
    fleet: ServiceProcess, visit: Visit, tmp_path: Path
) -> None:
    page = opened(visit, fleet, f"?search={LONG[-20:]}", **NARROW)
    assert names(page) == [LONG]
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    cell, name = page.locator(".entry th").bounding_box(), page.locator(".entry .name").bounding_box()
    assert cell is not None
    assert name is not None
    assert name["x"] + name["width"] <= cell["x"] + cell["width"]
