"""/rules: who is told of incidents."""

from typing import Any, Final

import httpx2
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.reading import InvalidBody, checked_tree, choices_of, invalid_form, read_small
from app.api.documents import ALL, Resource, permitted, refuse_name
from app.api.routing import JSON, OF_STORE, Answer, Operation, Route, answer, ref
from app.api.schemas.rules import RuleAnswer, RuleList, TestAnswer
from app.api.service import Service
from app.notices.addresses import HostUnknown, TargetRefused, addresses_of
from app.notices.catalog import UnknownRule
from app.notices.notice import trial_notice
from app.notices.posts import post_of
from app.notices.rule import InvalidRule, Rule, check, redacted
from app.notices.sender import PORTS, NotDelivered
from app.security import Scope

KIND: Final = UnknownRule.kind
SHOWN: Final = {*Rule.__struct_fields__} - {"secret", "url"}


async def put_rule(request: Request) -> Response:
    """Keep a rule."""
    service, name = rule_in(request)
    refuse_name(KIND, name, InvalidRule)
    rule = read_rule(checked_tree(await read_small(request)))
    await refuse_private(service, rule)
    is_new = await service.tasks.shielded(service.rules.put(name, msgspec.json.encode(rule)))
    return answer(described(name, rule), 201 if is_new else 200)


def rule_in(request: Request) -> tuple[Service, str]:
    """Give the rule that the path names. It tells others of streams, and its URL may be a secret: a key for all."""
    return permitted(request, KIND, Scope.ADMIN, ALL)


def read_rule(given: Any) -> Rule:
    """Read a rule. Raises InvalidBody, or InvalidRule."""
    if not isinstance(given, dict):
        raise InvalidBody("body", given, 'an object, such as {"target": "chat", "url": "https://..."}')
    try:
        rule = msgspec.convert(given, Rule)
    except msgspec.ValidationError as error:
        raise invalid_form(str(error), without_secrets(given), "", Rule.__struct_fields__, choices_of(Rule)) from error
    check(rule)
    return rule


def without_secrets(given: dict[str, Any]) -> dict[str, Any]:
    """Give a body as a refusal may repeat it: a URL may be a secret, and an unknown field a misspelt one."""
    return {name: value if name in SHOWN else redacted(value) for name, value in given.items()}


async def refuse_private(service: Service, rule: Rule) -> None:
    """Raise InvalidRule for a host that may not be told; one that has no address now may have one later."""
    url = httpx2.URL(rule.url)
    allow_private = service.settings.notices_allow_private
    try:
        await addresses_of(url.host, url.port or PORTS[url.scheme], allow_private=allow_private)
    except TargetRefused as error:
        raise InvalidRule("url", error.host, error.limit) from error
    except HostUnknown:
        pass


async def get_rule(request: Request) -> Response:
    """Give a rule."""
    service, name = rule_in(request)
    return answer(described(name, await service.rules.newest(name)))


def described(name: str, rule: Rule) -> RuleAnswer:
    """Describe a rule as an answer does."""
    fields = {field: getattr(rule, field) for field in Rule.__struct_fields__ if field != "secret"}
    return RuleAnswer(**fields, rule=name, has_secret=bool(rule.secret))


async def delete_rule(request: Request) -> Response:
    """Delete a rule; what it has not told yet stays untold."""
    service, name = rule_in(request)
    await service.rules.newest(name)
    await service.tasks.shielded(forget(service, name))
    return Response(status_code=204)


async def forget(service: Service, name: str) -> None:
    """Delete a rule after what waits for it: a later one of its name must not tell that."""
    await service.outbox.clear(name)
    await service.rules.delete(name)


async def get_rules(request: Request) -> Response:
    """List rules."""
    service, _ = rule_in(request)
    return answer(RuleList(await service.rules.names()))


async def post_test(request: Request) -> Response:
    """Send a test notice, once."""
    service, name = rule_in(request)
    rule, now = await service.rules.newest(name), service.registry.worker.clock.now()
    notice = trial_notice(name, rule.streams, now)
    try:
        status = await service.sender.send(post_of(rule, notice, now))
    except NotDelivered as error:
        return answer(TestAnswer(notice.id, False, error.status, str(error)))
    return answer(TestAnswer(notice.id, True, status))


RULES: Final = Resource(
    kind=KIND,
    noun="rule",
    example="on-call",
    reading=Scope.ADMIN,
    changing=Scope.ADMIN,
    on_list="All that has to do with rules needs a key that may administer all streams.",
    on_put="Workers follow within seconds.",
)
ROUTES = [
    *RULES.routes(list_=get_rules, put=put_rule, get=get_rule, delete=delete_rule),
    Route(
        "POST",
        "/rules/{rule}/test",
        post_test,
        Operation(
            id="test_rule",
            tag="rules",
            summary="Send a test notice",
            description="It is sent once, at once, whatever the rule says of severities and hours.",
            scope=Scope.ADMIN,
            path=RULES.path,
            answers={200: Answer({JSON: ref("TestAnswer")})},
            problems=("unknown_rule", *OF_STORE),
        ),
    ),
]
