"""Lua scripts, known to the server by their digests."""

from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple

LUA = Path(__file__).parent / "lua"


class Script(NamedTuple):
    """A script and its digest."""

    text: bytes
    digest: str


@cache
def read_script(name: str) -> Script:
    """Read lua/<name>.lua."""
    return script_of((LUA / f"{name}.lua").read_bytes())


def script_of(text: bytes) -> Script:
    """Add the digest to a script."""
    return Script(text, sha1(text, usedforsecurity=False).hexdigest())
