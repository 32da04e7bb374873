"""Signed tickets: what a browser holds instead of a key.

The key that a ticket stands for signs it, and the service stores nothing of it. Every worker that knows the key accepts
it, before and after a restart, until it expires or the key is removed.
"""

import hashlib
import hmac
import re
import secrets

TICKET = re.compile(r"(?P<body>(?P<ends>\d{1,12})\.(?P<key>[0-9a-f]{16})[A-Za-z0-9_-]{16,64})\.(?P<mark>[0-9a-f]{64})")
NONCE_BYTES = 18


def issue(secret: bytes, ends: int) -> str:
    """Write a ticket that is valid until a time, in epoch seconds."""
    body = f"{ends}.{key_id(secret)}{secrets.token_urlsafe(NONCE_BYTES)}"
    return f"{body}.{mark(secret, 'ticket', body)}"


def holds(ticket: str, secret: bytes, now: float) -> bool:
    """Tell whether this secret signed a ticket that has not expired."""
    found = TICKET.fullmatch(ticket)
    if found is None:
        return False
    is_ours = hmac.compare_digest(mark(secret, "ticket", found["body"]), found["mark"])
    return is_ours and now < int(found["ends"])


def named_key(ticket: str) -> str:
    """Give the id of the key that a ticket names; empty if it is not a ticket."""
    found = TICKET.fullmatch(ticket)
    return "" if found is None else found["key"]


def key_id(secret: bytes) -> str:
    """Give the id by which tickets name a key."""
    return mark(secret, "key", "")[:16]


def csrf_token(ticket: str, secret: bytes) -> str:
    """Give the token that our page sends with each change: pages of other sites cannot read it."""
    return mark(secret, "csrf", ticket)


def mark(secret: bytes, purpose: str, text: str) -> str:
    """Sign a text for one purpose."""
    return hmac.new(secret, f"itan 1 {purpose} {text}".encode(), hashlib.sha256).hexdigest()
