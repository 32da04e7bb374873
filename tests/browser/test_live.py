"""The page follows the stream, looks back, and outlives a restart of the service."""

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect

from itan_client import Client
from tests.browser.conftest import Visit
from tests.browser.console import Console
from tests.browser.samples import clusters
from tests.browser.stream_page import StreamPage, address
from tests.integration.process import ServiceProcess


def test_it_follows_a_stream_from_its_first_samples_on(service: ServiceProcess, client: Client, visit: Visit) -> None:
    client.observe("follow", clusters(20))
    shown = StreamPage(visit(address(service.url, "follow")))
    expect(shown.page.get_by_role("progressbar", name="Warm-up")).to_be_visible()
    for batch in range(10):
        client.observe("follow", clusters(40, seed=batch))
    expect(shown.tile("samples")).to_have_text("420")
    expect(shown.readout).to_contain_text("Sample 420")
    expect(shown.chart).to_have_attribute("data-to", "420")
    expect(shown.page.get_by_role("progressbar")).to_have_count(0)
    expect(shown.nodes.nth(2)).to_be_visible()
    told = len(client.model("follow").nodes)
    expect(shown.tile("nodes")).to_have_text(str(told))
    expect(shown.nodes).to_have_count(told)
    client.observe("follow", clusters(1500, seed=20))
    expect(shown.tile("samples")).to_have_text("1,920")
    expect(shown.tile("nodes")).not_to_have_text(str(told))
    expect(shown.nodes).to_have_count(len(client.model("follow").nodes))


def test_the_list_says_how_streams_stand_and_leads_to_them(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    client.observe("list.cold", clusters(10))
    client.observe("list.warm", clusters(200))
    page = visit(service.url)
    cold, warm = (page.get_by_role("row").filter(has_text=name) for name in ("list.cold", "list.warm"))
    expect(cold).to_contain_text(f"warming up, {client.get('list.cold').samples_needed} to go")
    expect(warm).to_contain_text("200")
    expect(warm).not_to_contain_text("warming up")
    warm.get_by_role("link").click()
    expect(page.get_by_role("heading", name="list.warm")).to_be_visible()


def test_looking_back_reads_what_is_not_there_yet(service: ServiceProcess, client: Client, visit: Visit) -> None:
    client.observe("past", clusters(3000))
    shown = StreamPage(visit(address(service.url, "past")))
    expect(shown.chart).to_have_attribute("data-to", "3000")
    live = shown.page.get_by_role("button", name="Live")
    expect(live).to_have_attribute("aria-pressed", "true")
    shown.chart.focus()
    with shown.page.expect_response(lambda answer: asks_before(answer.url, 1000)):
        shown.keyboard.press("Home")
    expect(shown.chart).to_have_attribute("data-from", "1")
    expect(shown.readout).to_contain_text("Sample 400")
    expect(live).to_have_attribute("aria-pressed", "false")
    shown.keyboard.press("-")
    expect(shown.readout).to_contain_text("Sample 799")
    client.observe("past", clusters(10))
    expect(shown.tile("samples")).to_have_text("3,010")
    expect(shown.readout).to_contain_text("Sample 799")
    live.click()
    expect(shown.readout).to_contain_text("Sample 3,010")


def asks_before(url: str, seq: int) -> bool:
    """Tell whether an address asks for the history of samples before one."""
    parts = urlsplit(url)
    return parts.path.endswith("/history") and int(parse_qs(parts.query).get("to", ["0"])[0]) in range(1, seq)


def test_dragging_pans_and_the_wheel_zooms_once_the_chart_has_the_focus(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    client.observe("gestures", clusters(1200))
    shown = StreamPage(visit(address(service.url, "gestures")))
    expect(shown.chart).to_have_attribute("data-to", "1200")
    x, y, width = place(shown)
    shown.page.mouse.move(x, y)
    shown.page.mouse.wheel(0, 1)
    drag(shown.page, x, y, width / 2)
    expect(shown.chart).to_have_attribute("data-to", re.compile(r"^(9|10)\d\d$"))
    assert width_of(shown) == 399  # the wheel scrolled the page before, and a drag keeps the width
    x, y, _ = place(shown)
    shown.page.mouse.move(x, y)
    before = shown.chart.get_attribute("data-from") or ""
    shown.page.mouse.wheel(0, -100)
    expect(shown.chart).not_to_have_attribute("data-from", before)
    assert width_of(shown) < 399


def place(shown: StreamPage) -> tuple[float, float, float]:
    """Give the middle of the score line's frame, and its width."""
    box = shown.chart.locator(".u-over").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box["width"]


def drag(page: Page, x: float, y: float, distance: float) -> None:
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + distance / 2, y)
    page.mouse.move(x + distance, y)
    page.mouse.up()


def width_of(shown: StreamPage) -> int:
    first, last = (int(shown.chart.get_attribute(name) or "") for name in ("data-from", "data-to"))
    return last - first


def test_a_clicked_sample_is_explained(service: ServiceProcess, client: Client, visit: Visit) -> None:
    client.observe("why", clusters(400, odd_share=0))
    client.observe("why", [{"cpu": 0.3, "latency_ms": 90, "queue": 5}], ids=["odd one"])
    shown = StreamPage(visit(address(service.url, "why")))
    shown.page.get_by_text("Flagged samples as a table").click()
    shown.page.get_by_role("button", name="Why sample 401").click()
    expect(shown.sample).to_contain_text("odd one")
    told = re.search(r"latency_ms was 90, expected about ([\d.]+) now\s+(\d+)%", shown.reasons.first.inner_text())
    assert told is not None
    assert 10 < float(told[1]) < 45
    assert 80 < int(told[2]) <= 100
    expect(shown.sample).to_contain_text("fewer than one ordinary sample in 100 scores as high")


def test_a_restart_of_the_service_is_survived(tmp_path: Path, visit: Visit, console: Console) -> None:
    console.expect("net::ERR_")
    with ServiceProcess(f"sqlite:///{tmp_path}/itan.db", tmp_path) as service, Client(service.url) as client:
        client.observe("s", clusters(300))
        shown = StreamPage(visit(address(service.url, "s")))
        expect(shown.tile("samples")).to_have_text("300")
        shown.settle()
        service.kill()
        expect(shown.banner).to_be_visible()
        shown.nodes.first.focus()
        shown.page.get_by_label("across").select_option(index=1)
        shown.keyboard.press("j")
        expect(shown.page.get_by_text("does not answer")).to_have_count(1)
        service.start()
        client.observe("s", clusters(50, seed=1))
        expect(shown.tile("samples")).to_have_text("350")
        expect(shown.readout).to_contain_text("Sample 350")
        expect(shown.page.get_by_text("does not answer")).to_have_count(0)


def test_what_fails_together_is_told_and_escapes_nowhere(
    service: ServiceProcess, client: Client, visit: Visit, console: Console
) -> None:
    console.expect("net::ERR_")
    client.observe("fails", clusters(300))
    shown = StreamPage(visit(address(service.url, "fails")))
    shown.settle()
    shown.page.route("**/density/grid*", lambda route: route.abort())
    shown.page.route("**/history*values=true*", lambda route: route.abort())
    shown.page.get_by_label("across").select_option(index=2)
    expect(shown.page.get_by_text("The service does not answer.").first).to_be_visible()


def test_a_service_without_streams_says_how_to_begin_and_one_of_many_lists_them_page_by_page(
    tmp_path: Path, visit: Visit
) -> None:
    with ServiceProcess("memory://", tmp_path) as service, Client(service.url) as client:
        page = visit(service.url)
        expect(page.get_by_text("No stream yet")).to_be_visible()
        expect(page.locator("pre")).to_contain_text(f"{service.url}/observe?stream=")
        for number in range(55):
            client.create(f"many.{number:02}", {"n_features": 1})
        names, pages = page.locator(".entry .name"), page.get_by_role("navigation", name="Pages")
        expect(names).to_have_text([f"many.{number:02}" for number in range(50)])
        pages.get_by_role("button", name="Next").click()
        expect(names).to_have_text([f"many.{number:02}" for number in range(50, 55)])
        expect(pages.get_by_role("button", name="Next")).to_be_disabled()
        pages.get_by_role("button", name="Previous").click()
        expect(names.first).to_have_text("many.00")
