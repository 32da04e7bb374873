"""How a pull is let in: credentials in files, read each time, and never repeated in a message."""

from pathlib import Path

import httpx2
import pytest

from app.pull.access import Access
from app.pull.errors import Permanent
from app.pull.prometheus import Prometheus
from tests.app.pull.fakes import URL, matrix


def asked(access: Access, n: int = 1, between: object = None) -> list[httpx2.Headers]:
    """Give the headers of requests."""
    seen: list[httpx2.Headers] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers)
        return matrix([])

    with Prometheus(URL, access, 30, transport=httpx2.MockTransport(handle)) as prometheus:
        for _ in range(n):
            prometheus.over("up", 0, 0, 30)
            if callable(between):
                between()
    return seen


def test_a_token_is_read_for_each_request(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    access = Access(bearer_token_file=str(token))
    seen = asked(access, 2, lambda: token.write_text("second"))
    assert [headers["Authorization"] for headers in seen] == ["Bearer first", "Bearer second"]


def test_basic_auth_and_headers(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("open sesame\n")
    (tmp_path / "headers").write_text("# of the proxy\n\nX-Secret: a:b \n")
    access = Access.model_validate(
        {
            "basic_auth": {"username": "itan", "password_file": str(tmp_path / "password")},
            "headers": {"X-Scope-OrgID": "team-a"},
            "headers_file": str(tmp_path / "headers"),
        }
    )
    (headers,) = asked(access)
    assert headers["Authorization"] == "Basic aXRhbjpvcGVuIHNlc2FtZQ=="
    assert (headers["X-Scope-OrgID"], headers["X-Secret"]) == ("team-a", "a:b")
    assert headers["User-Agent"] == "itan-pull"


@pytest.mark.parametrize("text", [None, "", "two\nlines", "no-colon"])
def test_files_that_cannot_be_used_are_named_but_not_what_they_hold(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "secret"
    if text is not None:
        path.write_text(text)
    access = Access(headers_file=str(path)) if text == "no-colon" else Access(bearer_token_file=str(path))
    with pytest.raises(Permanent) as raised:
        asked(access)
    assert str(path) in str(raised.value)
    assert "lines" not in str(raised.value)
    assert "no-colon" not in str(raised.value)


def test_a_certificate_authority_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(Permanent, match=r"cannot use .*ca\.pem for TLS"):
        Access(ca_file=str(tmp_path / "ca.pem")).verification()


@pytest.mark.parametrize(
    "url", ["prometheus:9090", "ftp://x", "http://", "http://x/?a=b", "http://itan:sesame@x", "http://[::1"]
)
def test_addresses_that_cannot_be_used(url: str) -> None:
    with pytest.raises(Permanent, match="--url: ") as raised:
        Prometheus(url, Access(), 30)
    assert "sesame" not in str(raised.value)


def test_a_path_before_the_interface_stays() -> None:
    def handle(request: httpx2.Request) -> httpx2.Response:
        assert request.url.path == "/prometheus/api/v1/query_range"
        return matrix([])

    with Prometheus(f"{URL}/prometheus/", Access(), 30, transport=httpx2.MockTransport(handle)) as prometheus:
        assert prometheus.over("up", 0, 0, 30) == []


@pytest.mark.parametrize("header", [("X A", "b"), ("X-A", "b\nX-B: c"), ("X-A", "é")])
def test_headers_that_cannot_be_sent_end_it_at_once(header: tuple[str, str]) -> None:
    with pytest.raises(Permanent, match="characters that no header can have"):
        asked(Access(headers=dict([header])))
