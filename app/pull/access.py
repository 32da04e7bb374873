"""How to be let in by a Prometheus: its certificate authority, and credentials that are kept in files."""

import re
import ssl
from base64 import b64encode
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Annotated, Final

import httpx2
from pydantic import BaseModel, ConfigDict, Field

from app.pull.errors import Permanent

Text = Annotated[str, Field(min_length=1)]
NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
VALUE: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")


class BasicAuth(BaseModel):
    """A user, and the file that holds the password."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    username: Text
    password_file: Text


class Access(BaseModel):
    """What a Prometheus wants to know of its clients. Secrets are in files, which are read for each request."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    bearer_token_file: Text | None = None
    basic_auth: BasicAuth | None = None
    headers: dict[Text, str] = {}
    headers_file: Text | None = None
    ca_file: Text | None = None
    cert_file: Text | None = None
    key_file: Text | None = None

    def verification(self) -> ssl.SSLContext | bool:
        """Give the TLS settings. Raises Permanent for a file that cannot be used."""
        if not (self.ca_file or self.cert_file):
            return True
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.cert_file:
                context.load_cert_chain(self.cert_file, self.key_file)
        except OSError as error:
            names = ", ".join(filter(None, (self.ca_file, self.cert_file, self.key_file)))
            raise Permanent(f"prometheus: cannot use {names} for TLS: {error}") from None
        return context


class Credentials(httpx2.Auth):
    """Adds the headers of an Access to each request, as the files hold them then: tokens are renewed in place."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        request.headers.update(headers_of(self._access))
        yield request


def headers_of(access: Access) -> Mapping[str, str]:
    """Give the headers, those of files too. Raises Permanent for a file that cannot be read."""
    headers = dict(access.headers)
    if access.headers_file:
        headers |= header_lines(access.headers_file)
    if access.bearer_token_file:
        headers["Authorization"] = f"Bearer {secret_in(access.bearer_token_file)}"
    if (basic := access.basic_auth) is not None:
        pair = f"{basic.username}:{secret_in(basic.password_file)}"
        headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    for name, value in headers.items():
        if not NAME.fullmatch(name) or not VALUE.fullmatch(value):
            # the value itself may be a secret
            raise Permanent(f"prometheus: header {name!r} or its value holds characters that no header can have")
    return headers


def header_lines(path: str) -> Mapping[str, str]:
    """Read a file of lines such as `X-Scope-OrgID: tenant`."""
    lines = [line for line in read(path).splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for number, line in enumerate(lines, start=1):
        if not line.partition(":")[0].strip() or ":" not in line:
            # the line itself may be a secret
            raise Permanent(f"prometheus.headers_file: line {number} of {path} is not like Name: value")
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def secret_in(path: str) -> str:
    """Read a file that holds one secret."""
    secret = read(path).strip()
    if not secret or not secret.isprintable():
        raise Permanent(f"prometheus: {path} must hold one line, the secret")
    return secret


def read(path: str) -> str:
    """Read a text. Raises Permanent."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Permanent(f"prometheus: cannot read {path}: {error}") from None
