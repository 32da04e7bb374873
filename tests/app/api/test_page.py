"""The live page's files."""

import re

import pytest

from app.api import page
from app.api.page import read_assets


@pytest.mark.parametrize("path", ["/", "/docs"])
async def test_the_page_and_what_it_names_are_served(service, path):
    answer = await service.http.get(path)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    named = re.findall(r'(?:src|href)="([^"]+)"', answer.text)
    assert len(named) >= 3
    for path in named:
        file = await service.http.get(f"/{path}")
        assert file.status_code == 200
        assert file.headers["x-content-type-options"] == "nosniff"
    assert (await service.http.get("/ui/app.js")).headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize("path", ["/", "/docs"])
async def test_nothing_from_elsewhere_may_run_in_it(service, path):
    headers = (await service.http.get(path)).headers
    policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("path", ["/", "/ui/app.js", "/docs", "/openapi.json"])
async def test_a_browser_that_has_it_is_told_so(service, path):
    first = await service.http.get(path)
    assert first.headers["cache-control"] == "no-cache"
    tag = first.headers["etag"]
    for asked in (tag, f'"other", {tag}', f"W/{tag}"):
        again = await service.http.get(path, headers={"If-None-Match": asked})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    changed = await service.http.get(path, headers={"If-None-Match": '"other"'})
    assert changed.content == first.content


async def test_an_installation_without_it_says_so(service, tmp_path, caplog):
    service.app.state.assets = read_assets(tmp_path)
    assert "the live page is missing" in caplog.text
    for path in ("/", "/docs"):
        problem = await service.refused("GET", path, 404, "not_found")
        assert "not built" in problem["detail"]


def test_it_is_where_the_package_is():
    assert page.FOLDER.is_dir()
