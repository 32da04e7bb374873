"""Incidents on the page: their shade, what severity means, and the button that ends the open one."""

import re

from playwright.sync_api import expect

from itan_client import Client
from tests.app.incidents import ordinary, outage
from tests.browser.conftest import Visit
from tests.browser.stream_page import StreamPage, address
from tests.integration.process import ServiceProcess

SHADED = """canvas => {
    const {width, height} = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d", {willReadFrequently: true});
    copy.drawImage(canvas, 0, 0);
    const wanted = getComputedStyle(document.documentElement).getPropertyValue("--flag-soft");
    const probe = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
    probe.fillStyle = wanted;
    probe.fillRect(0, 0, 1, 1);
    const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
    const data = copy.getImageData(0, 0, width, height).data;
    let n = 0;
    for (let i = 0; i < data.length; i += 4) n += data[i] === r && data[i + 1] === g && data[i + 2] === b;
    return n;
}"""


def test_an_incident_is_shaded_told_and_ended_by_one_label(
    service: ServiceProcess, client: Client, visit: Visit
) -> None:
    client.create("incident", {"n_features": 2})
    client.observe("incident", ordinary(390))
    shown = StreamPage(visit(address(service.url, "incident")))
    expect(shown.readout).to_contain_text("Sample 390")
    note = shown.page.locator(".incident")
    expect(note).to_have_count(0)
    canvas = shown.chart.locator("canvas")
    before = canvas.evaluate(SHADED)
    client.observe("incident", outage(12))
    expect(note).to_contain_text(re.compile(r"An incident is open since .*, sample 391\."))
    expect(shown.readout).to_contain_text("Sample 402")
    assert canvas.evaluate(SHADED) > before + 1_000

    note.get_by_role("button", name="Review it").click()
    expect(shown.subject).to_have_text("Incident 391")
    expect(shown.sample).to_contain_text("fewer than one ordinary sample in 100 scores as high")
    expect(shown.sample).to_contain_text("Part of the incident that began with sample 391.")

    note.get_by_role("button", name="This is normal").click()
    expect(shown.effect).to_contain_text(re.compile(r"Incident 391, 12 samples: normal"))
    expect(shown.effect).to_contain_text("ends incident 391")
    expect(note).to_have_count(0)
    assert client.get("incident").incident is None
    assert client.get("incident").costs.labels == 12


def test_a_key_that_may_not_label_gets_no_button(service: ServiceProcess, client: Client, visit: Visit) -> None:
    client.create("look", {"n_features": 2})
    client.observe("look", ordinary(200))
    client.observe("look", outage(3))
    page = visit(service.url)
    grant = {"keys_required": True, "signed_in": True, "csrf": None, "grants": [{"scopes": ["read"], "streams": "*"}]}
    page.route("**/session", lambda route: route.fulfill(json=grant))
    page.goto(address(service.url, "look"))
    page.reload()
    note = page.locator(".incident")
    expect(note).to_contain_text(re.compile(r"An incident is open since .*sample 201\."))
    expect(note.get_by_role("button", name="This is normal")).to_have_count(0)
