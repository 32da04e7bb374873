"""Signing in to the live page."""

from typing import Annotated

import msgspec
from msgspec import Meta


class SignInBody(msgspec.Struct, forbid_unknown_fields=True):
    """The key to sign in with."""

    key: Annotated[str, Meta(min_length=1, max_length=1024)]


class GrantAnswer(msgspec.Struct):
    """The allowed scopes, and the streams: one id, or a prefix and *."""

    scopes: list[str]
    streams: str


class SessionAnswer(msgspec.Struct):
    """Whether a key is needed, and what the signed-in key may do; without keys everything is allowed."""

    keys_required: bool
    signed_in: bool
    csrf: Annotated[str | None, Meta(description="to be sent in the header X-CSRF-Token with every change")]
    scopes: Annotated[list[str] | None, Meta(description="scopes of any of the grants")]
    streams: Annotated[str | None, Meta(description="streams of any of the grants, comma-separated")]
    grants: list[GrantAnswer] | None
