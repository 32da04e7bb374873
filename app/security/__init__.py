"""API keys: who may do what on which streams, and how much of it."""

from app.security.errors import (
    CSRF_HEADER,
    BeyondRate,
    CrossSite,
    CsrfTokenNeeded,
    Forbidden,
    InvalidKeys,
    KeyFull,
    RateLimited,
    Unauthenticated,
)
from app.security.file import KeyFile
from app.security.grants import Grant, Limits, Scope
from app.security.kept import KeptBytes
from app.security.quotas import Quotas
from app.security.ring import COOKIE, Grants, KeyRing, allowing, refuse_cross_site
from app.security.watch import KeyWatch

__all__ = [
    "COOKIE",
    "CSRF_HEADER",
    "BeyondRate",
    "CrossSite",
    "CsrfTokenNeeded",
    "Forbidden",
    "Grant",
    "Grants",
    "InvalidKeys",
    "KeptBytes",
    "KeyFile",
    "KeyFull",
    "KeyRing",
    "KeyWatch",
    "Limits",
    "Quotas",
    "RateLimited",
    "Scope",
    "Unauthenticated",
    "allowing",
    "refuse_cross_site",
]
