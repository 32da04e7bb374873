"""What axe finds, in light, in dark, and on a phone."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from itan_client import Client
from tests.browser.conftest import Visit
from tests.browser.samples import clusters
from tests.browser.stream_page import StreamPage, address
from tests.integration.process import ServiceProcess

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
LOOKS = {"light": {"color_scheme": "light"}, "dark": {"color_scheme": "dark"}, "phone": PHONE}
GRAVE = {"serious", "critical"}


@pytest.fixture(scope="module")
def axe(ui_with_packages: Path) -> str:
    """Give the source of axe-core."""
    return (ui_with_packages / "node_modules" / "axe-core" / "axe.min.js").read_text()


@pytest.fixture(scope="module")
def stream(service: ServiceProcess) -> str:
    with Client(service.url) as client:
        client.observe("axe", clusters(600, odd_share=0.03))
    return "axe"


def grave_faults(page: Page, axe: str) -> list[tuple[str, list[str]]]:
    """What axe calls serious or critical, and where. The tool's own evaluation is not held by the page's policy."""
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert len(found["passes"]) > 10
    return [
        (fault["id"], [node["html"][:200] for node in fault["nodes"]])
        for fault in found["violations"]
        if fault["impact"] in GRAVE
    ]


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_no_grave_fault(service: ServiceProcess, visit: Visit, axe: str, stream: str, look: str) -> None:
    page = visit(service.url, **LOOKS[look])
    expect(page.locator(".entry").first).to_be_visible()
    assert grave_faults(page, axe) == []
    page.goto(address(service.url, stream))
    shown = StreamPage(page)
    shown.settle()
    shown.keyboard.press("j")
    expect(shown.reasons.first).to_be_visible()
    shown.button("Anomaly").click()
    expect(shown.effect).to_contain_text("threshold")
    shown.chart.focus()
    shown.keyboard.press("Shift+ArrowLeft")
    expect(page.get_by_role("region", name="Label a stretch").locator(".found")).to_contain_text("labelled")
    for summary in page.locator("summary").all():
        summary.click()
    assert grave_faults(page, axe) == []
    shown.keyboard.press("?")
    assert grave_faults(page, axe) == []


def test_axe_finds_the_fault_of_a_page_that_has_one(visit: Visit, service: ServiceProcess, axe: str) -> None:
    page = visit(service.url)
    expect(page.get_by_role("heading", name="Streams")).to_be_visible()
    page.locator("h1").evaluate("it => it.insertAdjacentHTML('afterend', '<button></button>')")
    assert [fault for fault, _ in grave_faults(page, axe)] == ["button-name"]


def test_the_tree_is_walked_by_arrow_keys(service: ServiceProcess, visit: Visit, stream: str) -> None:
    shown = StreamPage(visit(address(service.url, stream)))
    shown.settle()
    focused = shown.page.locator(".node:focus")
    shown.nodes.first.focus()
    for key, node in (("ArrowDown", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("ArrowUp", 0)):
        shown.keyboard.press(key)
        expect(focused).to_have_attribute("aria-label", re.compile(rf"^Node {node}, "))
        expect(shown.page.locator(".note.node")).to_contain_text(f"Node {node}, ")


def test_nothing_is_wider_than_a_phone(service: ServiceProcess, visit: Visit, stream: str) -> None:
    page = visit(service.url, **PHONE)
    expect(page.locator(".entry").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.goto(address(service.url, stream))
    shown = StreamPage(page)
    shown.settle()
    shown.current.get_by_role("button").first.click()
    expect(shown.reasons.first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_colours_follow_the_system_until_the_visitor_chooses(service: ServiceProcess, visit: Visit) -> None:
    page = visit(service.url, color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.emulate_media(color_scheme="light")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="Dark colours").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
