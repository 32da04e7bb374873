"""A stretch of the charts is selected, by pointer or by keys, and labelled as one."""

import re
import time

from playwright.sync_api import Locator, Page, expect

from itan_client import Client
from tests.browser.conftest import Visit
from tests.browser.samples import clusters
from tests.browser.stream_page import StreamPage, address
from tests.integration.process import ServiceProcess

ODD = {"cpu": 9.0, "latency_ms": 900.0, "queue": 99.0}
ODD_SEQS = list(range(301, 306))
"""The odd samples, of 400."""


def grow(client: Client, stream: str, *, with_times: bool) -> None:
    samples = [*clusters(300, odd_share=0), *[ODD] * 5, *clusters(95, odd_share=0, seed=1)]
    now = time.time()
    client.observe(stream, samples[:300], timestamps=[now - 400 + k for k in range(300)] if with_times else None)
    client.observe(stream, samples[300:], timestamps=[now - 100 + k for k in range(100)] if with_times else None)


def bar(page: Page) -> Locator:
    return page.get_by_role("region", name="Label a stretch")


def drag(shown: StreamPage, first: float, last: float) -> None:
    """Drag between two shares of the score line's width."""
    box = shown.chart.locator(".u-over").bounding_box()
    assert box is not None
    x, y = (lambda share: box["x"] + share * box["width"]), box["y"] + box["height"] / 2
    shown.page.mouse.move(x(first), y)
    shown.page.mouse.down()
    shown.page.mouse.move(x((first + last) / 2), y)
    shown.page.mouse.move(x(last), y)
    shown.page.mouse.up()


def labels_of(client: Client, stream: str) -> dict[int, bool]:
    """Give the labels of a stream's samples."""
    history = client.history(stream)
    return {seq: label for seq, label in zip(history.seq, history.label, strict=True) if label is not None}


def test_dragging_with_shift_labels_what_was_flagged_by_its_time_and_undo_takes_it_back(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    grow(client, "times", with_times=True)
    history = client.history("times")
    assert [seq for seq, flagged in zip(history.seq, history.is_anomaly, strict=True) if flagged] == ODD_SEQS
    shown = StreamPage(visit(address(service.url, "times")))
    expect(shown.chart).to_have_attribute("data-axis", "time")
    shown.keyboard.down("Shift")
    drag(shown, 0.6, 0.9)
    shown.keyboard.up("Shift")
    expect(shown.chart).to_have_attribute("data-to", "400")
    expect(bar(shown.page).locator(".found")).to_have_text("5 samples would be labelled.")
    assert labels_of(client, "times") == {}
    bar(shown.page).get_by_role("button", name="Label as anomaly").click()
    expect(bar(shown.page).locator(".done")).to_contain_text("5 samples labelled anomalous.")
    expect(shown.tile("labels")).to_have_text("5")
    assert labels_of(client, "times") == dict.fromkeys(ODD_SEQS, True)
    bar(shown.page).get_by_role("button", name="Undo").click()
    expect(bar(shown.page).locator(".found")).to_be_visible()
    assert labels_of(client, "times") == {}


def test_keys_select_all_samples_of_a_stretch_by_their_numbers(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    grow(client, "numbers", with_times=False)
    shown = StreamPage(visit(address(service.url, "numbers")))
    expect(shown.chart).to_have_attribute("data-axis", "samples")
    expect(shown.chart).to_have_attribute("data-to", "400")
    shown.chart.focus()
    for _ in range(3):
        shown.keyboard.press("Shift+ArrowLeft")
    bar(shown.page).get_by_label("all samples").check()
    expect(bar(shown.page).locator(".found")).to_have_text("24 samples would be labelled.")
    first, last = (int(seq) for seq in re.findall(r"\d+", bar(shown.page).locator("p").first.inner_text()))
    assert last - first == 23
    bar(shown.page).get_by_role("button", name="Label as normal").click()
    expect(bar(shown.page).locator(".done")).to_contain_text("24 samples labelled normal.")
    assert labels_of(client, "numbers") == dict.fromkeys(range(first, last + 1), False)
    bar(shown.page).get_by_role("button", name="Close").click()
    shown.page.get_by_role("button", name="Select").click()
    drag(shown, 0.1, 0.2)
    expect(bar(shown.page)).to_be_visible()
    shown.chart.focus()
    shown.keyboard.press("Escape")
    expect(bar(shown.page)).to_have_count(0)
    expect(shown.chart).to_have_attribute("data-to", "400")
