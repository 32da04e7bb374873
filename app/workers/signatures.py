"""Signs requests from one worker to another, and checks them."""

import hmac
import re
from collections.abc import Callable
from hashlib import sha256
from secrets import token_hex
from typing import Final

from app.tickets import mark
from app.workers.errors import NotAWorker

HEADER: Final = "X-Itan-Worker"
MOST_SECONDS: Final = 30.0
"""How far the clocks of two workers may differ, and how long a signature is remembered so that it serves only once."""
SIGNATURE: Final = re.compile(
    r"(?P<said>(?P<time>\d{1,12}) (?P<nonce>[0-9a-f]{32}) (?P<digest>[0-9a-f]{64})) (?P<mark>[0-9a-f]{64})"
)


class Signatures:
    """Signs a body for one worker at its address: no other one accepts it, and this one only once and soon."""

    def __init__(self, secret: str, address: str, now: Callable[[], float]) -> None:
        self._secret, self._address, self._now = secret.encode(), address, now
        self._seen: dict[str, float] = {}

    def sign(self, address: str, body: bytes) -> str:
        """Sign a body for the worker at an address."""
        said = f"{int(self._now())} {token_hex(16)} {sha256(body).hexdigest()}"
        return f"{said} {self._mark(address, said)}"

    def check(self, signature: str) -> str:
        """Give the digest of the body that a signature is of. Raises NotAWorker."""
        found = SIGNATURE.fullmatch(signature)
        if found is None:
            raise NotAWorker(f"no valid {HEADER}")
        if not hmac.compare_digest(found["mark"], self._mark(self._address, found["said"])):
            raise NotAWorker("with another secret, or for another worker")
        now = self._now()
        if abs(now - int(found["time"])) > MOST_SECONDS:
            raise NotAWorker(f"more than {MOST_SECONDS:.0f} seconds from the time of this worker's clock")
        self._refuse_again(found["nonce"], now)
        return found["digest"]

    def _refuse_again(self, nonce: str, now: float) -> None:
        # a clock that was ahead makes a signature valid for twice as long
        while self._seen and next(iter(self._seen.values())) + 2 * MOST_SECONDS < now:
            del self._seen[next(iter(self._seen))]
        if nonce in self._seen:
            raise NotAWorker("this request has come before")
        self._seen[nonce] = now

    def _mark(self, address: str, said: str) -> str:
        return mark(self._secret, "worker", f"{address} {said}")


def refuse_other_body(digest: str, body: bytes) -> None:
    """Raise NotAWorker for a body that the signature is not of."""
    if not hmac.compare_digest(digest, sha256(body).hexdigest()):
        raise NotAWorker("of another body")
