"""A name server on loopback, for what finds its peers by DNS."""

import socketserver
import threading
from typing import Self

import dns.message
import dns.rcode
import dns.rrset


class Names:
    """Answers for the addresses that it is given; they may change meanwhile."""

    def __init__(self, addresses: dict[str, str]) -> None:
        self.addresses = addresses

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                packet, socket = self.request
                socket.sendto(answer(packet, addresses), self.client_address)

        self._server = socketserver.UDPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def answer(packet: bytes, addresses: dict[str, str]) -> bytes:
    """Give the address that a question asks for, or say that there is no such name."""
    asked = dns.message.from_wire(packet)
    made = dns.message.make_response(asked)
    (question,) = asked.question
    address = addresses.get(question.name.to_text())
    if address is None:
        made.set_rcode(dns.rcode.NXDOMAIN)
    elif question.rdtype == dns.rdatatype.A:
        made.answer.append(dns.rrset.from_text(question.name, 5, "IN", "A", address))
    return made.to_wire()
