"""Connections before they are requests: what the service reads, and for how long."""

from app.protocol.connections import Connections
from app.protocol.limits import Limits
from app.protocol.server import Server, configure

__all__ = ["Connections", "Limits", "Server", "configure"]
