"""Sends messages to other workers, over HTTP."""

import asyncio
import logging
from collections import defaultdict
from typing import Final

import httpx2
import msgspec

from app.logs.context import known
from app.streams.errors import Stopping
from app.streams.open.clock import Clock
from app.workers.errors import HolderUnreachable
from app.workers.signatures import HEADER, Signatures

PATH: Final = "/workers/v1/records"
"""With the version of the messages: while workers are upgraded, streams move from one that does not know it."""
MEDIA: Final = "application/msgpack"
CONNECT_SECONDS: Final = 1.0
CALLS_AT_ONCE: Final = 16
"""To one worker: one that hangs must not keep requests from the others."""
QUIET_SECONDS: Final = 10.0
"""A worker that does not answer is logged once in this time."""

logger = logging.getLogger(__name__)


class Peers:
    """The other workers, by address."""

    def __init__(self, signatures: Signatures, clock: Clock, answer_seconds: float, lease_seconds: float) -> None:
        self._signatures, self._clock = signatures, clock
        self._answer_seconds, self._lease_seconds = answer_seconds, lease_seconds
        self._free: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(CALLS_AT_ONCE))
        self._logged_at: dict[str, float] = {}
        self._http: httpx2.AsyncClient | None = None
        self.transport: httpx2.AsyncBaseTransport | None = None
        """Another way to the workers than over the network."""

    async def send(self, address: str, message: bytes) -> bytes:
        """Send a message, and give the reply. Raises HolderUnreachable; Stopping if the worker takes nothing."""
        try:
            async with asyncio.timeout(self._answer_seconds), self._free[address]:
                answer = await self._client().post(
                    f"{address}{PATH}", content=message, headers=self._headers(address, message)
                )
        except TimeoutError:
            raise self._unreachable(address, f"not within {self._answer_seconds:.0f} s") from None
        except httpx2.TransportError as error:
            raise self._unreachable(address, str(error) or type(error).__name__) from None
        if answer.status_code == 200:
            return answer.content
        code = code_of(answer)
        if code in ("stopping", "not_found"):
            raise Stopping
        raise self._unreachable(address, f"{answer.status_code} {code}".strip())

    def _headers(self, address: str, message: bytes) -> dict[str, str]:
        """Give the headers; the log lines of both workers have the id of the client's request."""
        signature = self._signatures.sign(address, message)
        request_id = (known() or {}).get("request_id")
        return {"Content-Type": MEDIA, HEADER: signature} | ({"X-Request-ID": request_id} if request_id else {})

    def _client(self) -> httpx2.AsyncClient:
        if self._http is None:
            # the settings of a proxy are for the way out, not for other workers
            self._http = httpx2.AsyncClient(
                transport=self.transport,
                trust_env=False,
                timeout=httpx2.Timeout(self._answer_seconds, connect=CONNECT_SECONDS),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=4 * CALLS_AT_ONCE),
            )
        return self._http

    def _unreachable(self, address: str, reason: str) -> HolderUnreachable:
        error, now = HolderUnreachable(address, reason, self._lease_seconds), self._clock.monotonic()
        if self._logged_at.get(address, -QUIET_SECONDS) + QUIET_SECONDS <= now:
            self._logged_at[address] = now
            logger.warning("records not forwarded: %s", error)
        return error

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()


def code_of(answer: httpx2.Response) -> str:
    """Give the code of a problem; empty if the answer is none."""
    try:
        return str(msgspec.json.decode(answer.content, type=dict[str, object]).get("code", ""))
    except msgspec.MsgspecError:
        return ""
