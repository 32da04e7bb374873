"""The file that says what to pull."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from app.durations import UNITS, read_duration
from app.pull.access import Access, Text
from app.sources.templates import STREAM_LITERAL, Template
from app.streams.errors import InvalidStreamId
from app.streams.ids import LIMIT, checked_stream_id

LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
STREAM: Final = "a label such as instance, or a template such as {job}:{instance}"
OWN: Final = {"features": "queries", "n_features": "queries", "calendar": "calendar"}
"""Fields of a stream's config that have a place of their own in the file."""
LONGEST: Final = {"step": "1d", "delay": "7d", "backfill": "1000d", "timeout": "10m"}


class InvalidPullConfig(ValueError):
    """A file that cannot be used."""


def span(longest: str, least: int, given: Any) -> int:
    """Read a span of time within bounds."""
    form = f"a time such as 30s, 15m or 7d, from {least}s to {longest}"
    if not isinstance(given, str):
        raise ValueError(f"must be {form}")
    try:
        seconds = 0 if re.fullmatch("0[smhd]?", given) else read_duration(given)
    except ValueError:
        raise ValueError(f"must be {form}") from None
    if not least <= seconds <= read_duration(longest):
        raise ValueError(f"must be {form}")
    return seconds


def spelled(given: Any) -> Any:
    """Let a text alone stand for a query without more."""
    return {"query": given} if isinstance(given, str) else given


class Query(BaseModel):
    """A query in PromQL, and what the feature is that it gives."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    query: Text
    kind: Text = "gaussian"
    role: Literal["value", "context"] = "value"


class PullConfig(BaseModel):
    """What to pull: queries, the label that names the stream, the step; and what new streams are configured with."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    queries: Annotated[dict[Text, Annotated[Query, BeforeValidator(spelled)]], Field(min_length=1, max_length=256)]
    step: Annotated[int, BeforeValidator(partial(span, LONGEST["step"], 1))]
    stream: Text | None = None
    stream_id: Text | None = None
    delay: Annotated[int, BeforeValidator(partial(span, LONGEST["delay"], 0))] = 30
    backfill: Annotated[int, BeforeValidator(partial(span, LONGEST["backfill"], 0))] = 7 * UNITS["d"]
    timeout: Annotated[int, BeforeValidator(partial(span, LONGEST["timeout"], 1))] = 30
    max_streams: Annotated[int, Field(ge=1, le=100_000)] = 1000
    calendar: list[str | float | int] | None = None
    timezone: Text | None = None
    config: dict[str, Any] = {}
    prometheus: Access = Access()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.stream is None) == (self.stream_id is None):
            raise ValueError("stream, or else stream_id, must be given, and not both")
        if self.stream is not None and not is_stream(self.stream):
            raise ValueError(f"stream: {self.stream!r}; must be {STREAM}")
        if self.stream_id is not None and not is_stream_id(self.stream_id):
            raise ValueError(f"stream_id: {self.stream_id!r}; must be {LIMIT}")
        if all(query.role == "context" for query in self.queries.values()):
            raise ValueError("queries: all have the role context; at least one must have the role value")
        if self.timezone is not None and self.calendar is None:
            raise ValueError(f"timezone: {self.timezone!r}; must be left out without calendar")
        for name, place in OWN.items():
            if name in self.config:
                raise ValueError(f"config.{name}: {self.config[name]!r}; must be left out, {place} says it")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The features in order."""
        return tuple(self.queries)

    @property
    def template(self) -> Template:
        """The template of the streams' ids."""
        text = self.stream_id or self.stream
        assert text is not None
        return Template(f"{{{text}}}" if self.stream_id is None and "{" not in text else text)

    @property
    def stream_config(self) -> dict[str, Any] | None:
        """The config to create streams with; None if the first sample says all."""
        is_plain = all(query.kind == "gaussian" and query.role == "value" for query in self.queries.values())
        if is_plain and not self.config and self.calendar is None:
            return None
        features = [{"name": name, "kind": query.kind, "role": query.role} for name, query in self.queries.items()]
        calendar = {"periods": self.calendar, "timezone": self.timezone or "UTC"}
        return {"features": features, **self.config} | ({} if self.calendar is None else {"calendar": calendar})


def is_stream(text: str) -> bool:
    """Tell whether a text is a label, or a template of labels."""
    if LABEL.fullmatch(text):
        return True
    template = Template(text)
    return (
        bool(template.paths)
        and all(map(LABEL.fullmatch, template.paths))
        and all(map(STREAM_LITERAL.fullmatch, template.literals))
    )


def is_stream_id(text: str) -> bool:
    """Tell whether a text is the id of a stream."""
    try:
        checked_stream_id(text)
    except InvalidStreamId:
        return False
    return True


def read_config(text: str) -> PullConfig:
    """Read a file. Raises InvalidPullConfig, with all that is wrong: which key, which value, which limit."""
    try:
        # refuses a key that is given twice
        tree = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        first = str(error).partition("To suppress")[0]
        raise InvalidPullConfig(f"is not YAML: {' '.join(first.split())}") from None
    if not isinstance(tree, dict):
        raise InvalidPullConfig("must hold keys and values, at least stream, step and queries")
    try:
        return PullConfig.model_validate(tree)
    except ValidationError as error:
        raise InvalidPullConfig("; ".join(map(sentence, error.errors()))) from None


def sentence(error: Any) -> str:
    """Say what is wrong at one place."""
    place, reason = key_of(error["loc"]), error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        known = f": the keys are {', '.join(PullConfig.model_fields)}" if len(error["loc"]) == 1 else ""
        reason = f"is no key here{known}"
    elif error["type"] == "missing":
        return f"{place}: must be given"
    return f"{place}: {error['input']!r}; {reason}" if place else reason


def key_of(place: Sequence[int | str]) -> str:
    """Write a place as a path."""
    return ".".join(map(str, place))
