"""Web pages of other sites and an open service on loopback."""

import pytest

CHANGES = [
    ("POST", "/observe?stream=s", {"samples": [[1.0, 2.0]]}),
    ("POST", "/feedback?stream=s", {"labels": [{"seq": 1, "anomaly": True}]}),
    ("POST", "/streams/s/reset", None),
    ("PUT", "/streams/s", {"n_features": 2}),
    ("PUT", "/streams/s/import", None),
    ("DELETE", "/streams/s", None),
]
READS = [
    ("POST", "/observe?stream=s&learn=false", {"samples": [[1.0, 2.0]]}),
    ("GET", "/density?stream=s", None),
    ("GET", "/streams/s", None),
    ("GET", "/streams", None),
    ("GET", "/metrics", None),
]


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
async def test_a_page_of_another_site_changes_nothing(service, method, path, body):
    await service.observe([[1.0, 2.0]] * 3)
    before = await service.export()
    problem = await service.refused(
        method, path, 403, "cross_site", json=body, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert "Sec-Fetch-Site" in problem["detail"]
    assert await service.export() == before


@pytest.mark.parametrize("site", ["same-origin", "same-site", "none"])
async def test_its_own_pages_and_typed_addresses_may(service, site):
    await service.observe([[1.0, 2.0]] * 3)
    answer = await service.http.post("/streams/s/reset", headers={"Sec-Fetch-Site": site})
    assert answer.json()["n_seen"] == 0


@pytest.mark.parametrize(("method", "path", "body"), READS)
async def test_reads_change_nothing_and_are_answered(service, method, path, body):
    await service.observe([[1.0, 2.0]] * 3)
    answer = await service.http.request(method, path, json=body, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
