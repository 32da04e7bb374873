"""What is known of the current request; every line logged for it holds these fields.

This is one dict in one context variable, not structlog.contextvars: a change runs in a task of its own, whose context
is a copy, and what the task finds out must reach the last line of the request.
"""

from contextvars import ContextVar
from typing import Any

Fields = dict[str, Any]

_REQUEST: ContextVar[Fields] = ContextVar("request")


def begin(fields: Fields) -> None:
    """Begin a request, in this task and the tasks that it starts."""
    _REQUEST.set(fields)


def note(**fields: Any) -> None:
    """Add fields to the current request, if there is one."""
    if (request := known()) is not None:
        request.update(fields)


def known() -> Fields | None:
    """Give the fields of the current request; None if there is no request."""
    return _REQUEST.get(None)
