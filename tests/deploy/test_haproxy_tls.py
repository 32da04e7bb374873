"""TLS as deploy/haproxy/compose.tls.yml sets it up: HTTP/2, a way from plain HTTP, and Secure cookies."""

import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from ruamel.yaml import YAML

from tests.integration.process import ServiceProcess
from tests.integration.proxy import FILES, FOLDER
from tests.processes import find_free_port, find_program, is_listening, running

OVERRIDE = FOLDER / "compose.tls.yml"
FLAGS = [word for path in FILES for word in ("-f", str(path))]
KEY = "browsers-key"


@dataclass(frozen=True)
class Secured:
    """HAProxy with TLS before a service."""

    plain_port: int
    port: int
    trusted: Path

    def context(self, *protocols: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.trusted))
        context.set_alpn_protocols(protocols)
        return context

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a self-signed certificate, as HAProxy reads it, and what clients trust."""
    folder = tmp_path_factory.mktemp("certificate")
    files = ["-keyout", str(folder / "key"), "-out", str(folder / "trusted")]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"]
    command = [
        find_program("openssl"),
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ]
    subprocess.run([*command, *files, *names], check=True, capture_output=True)
    served = folder / "served"
    shutil.copytree(FOLDER / "certificates", served)
    (served / "localhost.pem").write_text((folder / "trusted").read_text() + (folder / "key").read_text())
    return folder


@pytest.fixture(scope="module")
def secured(certificate: Path) -> Iterator[Secured]:
    with ExitStack() as stack:
        service = stack.enter_context(ServiceProcess("memory://", certificate, api_keys=KEY))
        plain, port = find_free_port(), find_free_port()
        worker = service.url.removeprefix("http://")
        variables = {f"ITAN_WORKER_{number}": worker for number in (1, 2, 3)}
        variables |= {"ITAN_LISTEN": f"127.0.0.1:{plain}", "ITAN_METRICS_LISTEN": f"127.0.0.1:{find_free_port()}"}
        variables |= {"ITAN_TLS_LISTEN": f"127.0.0.1:{port}", "ITAN_TLS_PORT": str(port)}
        variables |= {"ITAN_TLS_CERTIFICATES": str(certificate / "served"), "PATH": os.environ["PATH"]}
        haproxy = find_program("haproxy")
        checked = subprocess.run([haproxy, "-c", *FLAGS], env=variables, capture_output=True, text=True)
        assert "Configuration file is valid" in checked.stdout
        assert "WARNING" not in checked.stderr
        said = certificate / "haproxy.txt"
        stack.enter_context(running([haproxy, "-db", *FLAGS], said, lambda: is_listening(port), environment=variables))
        yield Secured(plain, port, certificate / "trusted")


def test_the_variables_of_compose_are_those_of_the_file() -> None:
    given = YAML(typ="safe").load(OVERRIDE)["services"]["haproxy"]["environment"]
    text = FILES[0].read_text()
    assert all(f"${{{name}}}" in text for name in given)
    check = ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(OVERRIDE)]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def connected(secured: Secured, *protocols: str) -> Iterator[ssl.SSLSocket]:
    with (
        socket.create_connection(("127.0.0.1", secured.port), timeout=10) as connection,
        secured.context(*protocols).wrap_socket(connection, server_hostname="localhost") as tls,
    ):
        yield tls


@pytest.mark.parametrize(("protocols", "chosen"), [(("http/1.1", "h2"), "h2"), (("http/1.1",), "http/1.1"), ((), None)])
def test_who_speaks_http_2_gets_it(secured: Secured, protocols: tuple[str, ...], chosen: str | None) -> None:
    with connected(secured, *protocols) as tls:
        assert tls.selected_alpn_protocol() == chosen
        assert tls.version() in ("TLSv1.2", "TLSv1.3")


def test_a_request_in_http_2_is_answered(secured: Secured) -> None:
    # :method GET, :scheme https, :path /livez, :authority localhost, as HPACK numbers them
    head = bytes([0x82, 0x87, 0x04, 6]) + b"/livez" + bytes([0x01, 9]) + b"localhost"
    with connected(secured, "h2") as tls, tls.makefile("rb") as answer:
        tls.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 0x5, 1, head))
        kind, payload = -1, b""
        while kind != 1:
            header = answer.read(9)
            kind, payload = header[3], answer.read(int.from_bytes(header[:3]))
    assert payload[0] == 0x88, "which is :status 200"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def test_old_protocols_are_refused(secured: Secured) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", secured.port)) as connection, pytest.raises((ssl.SSLError, OSError)):
        old.wrap_socket(connection)


def test_a_request_goes_through_and_its_cookie_is_for_https_alone(secured: Secured) -> None:
    with httpx2.Client(base_url=secured.url, verify=secured.context("http/1.1"), trust_env=False) as client:
        body = {"samples": [[1.0, 2.0]]}
        headers = {"Authorization": f"Bearer {KEY}"}
        assert client.post("/observe?stream=a", json=body, headers=headers).raise_for_status().json()["seq"] == [1]
        cookie = client.post("/session", json={"key": KEY}).raise_for_status().headers["set-cookie"]
    assert "Secure" in cookie


def test_plain_http_leads_to_https_and_a_post_stays_one(secured: Secured) -> None:
    url = f"http://localhost:{secured.plain_port}/observe?stream=a%20b"
    answer = httpx2.post(url, json={}, trust_env=False)
    assert answer.status_code == 308
    assert answer.headers["location"] == f"{secured.url}/observe?stream=a%20b"
