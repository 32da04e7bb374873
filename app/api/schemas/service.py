"""The health of the service, and its errors."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.streams.faults import Scalar


class Health(msgspec.Struct):
    """The state of the process and its store."""

    status: str
    store: str | None = None
    reason: str | None = None
    warnings: list[str] = []
    damaged_streams: Annotated[int, Meta(description="streams that are known to be damaged")] = 0


class Wrong(msgspec.Struct):
    """A field whose value is beyond a limit; the field is a path such as samples[500].cpu."""

    field: str
    value: Scalar
    limit: str


class Problem(msgspec.Struct, omit_defaults=True):
    """An error (RFC 9457): a stable code, and what was wrong where, beyond which limit.

    errors names up to 20 wrong fields, the first of them again; n_errors says how many there are.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | UnsetType = UNSET
    value: Scalar | UnsetType = UNSET
    limit: str | UnsetType = UNSET
    errors: list[Wrong] | UnsetType = UNSET
    n_errors: int | UnsetType = UNSET
    samples_needed: int | UnsetType = UNSET
