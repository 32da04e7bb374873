"""Sends one request to an address that was checked just before."""

import asyncio
import ssl
from typing import Final

import httpx2

from app.notices.addresses import HostUnknown, TargetRefused, addresses_of
from app.notices.posts import Post

TRY_SECONDS: Final = 10.0
PORTS: Final = {"http": 80, "https": 443}
TRY_AGAIN: Final = frozenset({408, 425, 429})


class NotDelivered(Exception):
    """A receiver that could not be reached, or did not take a notice: trying again may help."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


class Rejected(NotDelivered):
    """A receiver that says that the request is wrong, or one that may not be asked."""


class Sender:
    """Sends requests, each over a connection of its own: it leads to the address that was checked, and nowhere else."""

    def __init__(self, *, allow_private: bool, verify: ssl.SSLContext | bool = True) -> None:
        self._allow_private, self._verify = allow_private, verify
        self._made: httpx2.AsyncClient | None = None
        self._making = asyncio.Lock()

    async def _client(self) -> httpx2.AsyncClient:
        """Make the client when it is first needed, in a thread: to read the certificates takes a tenth of a second."""
        async with self._making:
            if self._made is None:
                self._made = await asyncio.to_thread(self._make)
        return self._made

    def _make(self) -> httpx2.AsyncClient:
        # no proxy of the environment, no redirect: either could lead to another address
        return httpx2.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            verify=self._verify,
            timeout=TRY_SECONDS,
            limits=httpx2.Limits(max_connections=100, max_keepalive_connections=0),
        )

    async def send(self, post: Post) -> int:
        """Send a request once and give the status of success. Raises NotDelivered, or Rejected."""
        try:
            async with asyncio.timeout(TRY_SECONDS):
                status = await self._send(post)
        except TargetRefused as error:
            raise Rejected(str(error)) from error
        except HostUnknown as error:
            raise NotDelivered(f"no address of {error} is known") from error
        except (TimeoutError, httpx2.HTTPError) as error:
            # an error of httpx may repeat the URL, which may be secret
            raise NotDelivered(type(error).__name__) from None
        if 200 <= status < 300:
            return status
        kind = Rejected if 300 <= status < 500 and status not in TRY_AGAIN else NotDelivered
        raise kind(f"the receiver answered {status}", status)

    async def _send(self, post: Post) -> int:
        url = httpx2.URL(post.url)
        port = url.port or PORTS[url.scheme]
        addresses = await addresses_of(url.host, port, allow_private=self._allow_private)
        for address in addresses[:-1]:
            try:
                return await self._send_to(address, url, post)
            except httpx2.ConnectError:
                continue
        return await self._send_to(addresses[-1], url, post)

    async def _send_to(self, address: str, url: httpx2.URL, post: Post) -> int:
        headers = {**post.headers, "Host": url.netloc.decode("ascii"), "User-Agent": "itan"}
        at_address = url.copy_with(host=address)
        named = {"sni_hostname": url.raw_host.decode("ascii")}
        client = await self._client()
        request = client.build_request("POST", at_address, content=post.body, headers=headers, extensions=named)
        answer = await client.send(request, stream=True)
        await answer.aclose()  # its body says nothing that is needed, and may be long
        return answer.status_code

    async def close(self) -> None:
        """Close the connections."""
        if self._made is not None:
            await self._made.aclose()
