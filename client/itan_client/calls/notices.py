"""Rules: who is told of incidents."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from itan_client.answers.rules import Rule, RuleNames, RuleTest
from itan_client.request import JSON, Request, encode, nothing


def rules() -> Request[list[str]]:
    """List the names of all rules."""
    return Request("GET", "/rules", lambda content: _NAMES(content).rules)


def get_rule(rule: str) -> Request[Rule]:
    """Get a rule, without its secret."""
    return Request("GET", _path(rule), _RULE)


def put_rule(rule: str, fields: Mapping[str, Any]) -> Request[Rule]:
    """Create or replace a rule, such as {"streams": "web-*", "target": "webhook", "url": "https://..."}."""
    return Request("PUT", _path(rule), _RULE, {}, encode(fields), JSON)


def delete_rule(rule: str) -> Request[None]:
    """Delete a rule; what it has not told yet stays untold."""
    return Request("DELETE", _path(rule), nothing, repeatable=False)


def test_rule(rule: str) -> Request[RuleTest]:
    """Send a test notice, once, and get what became of it."""
    return Request("POST", f"{_path(rule)}/test", _TEST, repeatable=False)


def _path(rule: str) -> str:
    return f"/rules/{quote(rule, safe='')}"


_RULE = msgspec.json.Decoder(Rule).decode
_NAMES = msgspec.json.Decoder(RuleNames).decode
_TEST = msgspec.json.Decoder(RuleTest).decode
