"""What is known of the request at hand; whatever is logged on its behalf says it too.

It is one dict in one context variable, not structlog.contextvars: a change runs in a task of its own, whose context is
a copy, and what is found out there must reach the line that ends the request.
"""

from contextvars import ContextVar
from typing import Any

Fields = dict[str, Any]

_REQUEST: ContextVar[Fields] = ContextVar("request")


def begin(fields: Fields) -> None:
    """Begin a request, in this task and those it starts."""
    _REQUEST.set(fields)


def note(**fields: Any) -> None:
    """Add to what is known of the request, if there is one."""
    if (request := known()) is not None:
        request.update(fields)


def known() -> Fields | None:
    """Give what is known of the request; None outside of any."""
    return _REQUEST.get(None)
